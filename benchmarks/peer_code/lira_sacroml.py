"""SACRO-ML: the likelihood-ratio attack, offline as is its default, with the report."""

from given import X_in, X_out, model, shadows, y_in, y_out
from sacroml.attacks.likelihood_attack import LIRAAttack
from sacroml.attacks.target import Target

target = Target(model=model, X_train=X_in, y_train=y_in, X_test=X_out, y_test=y_out)
attack = LIRAAttack(n_shadow_models=shadows, report_individual=True, output_dir="run")
output = attack.attack(target)
# what is compared
found = output["attack_experiment_logger"]["attack_instance_logger"]["instance_0"]["individual"]
scores, membership = found["member_prob"], found["member"]
