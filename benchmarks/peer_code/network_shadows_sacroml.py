"""SACRO-ML: the likelihood-ratio attack on a network, whose training is a file (training.py)."""

from given import X_in, X_out, network, shadows, y_in, y_out
from sacroml.attacks.likelihood_attack import LIRAAttack
from sacroml.attacks.target import Target

target = Target(
    model=network,
    model_module_path="architecture.py",
    model_name="Network",
    model_params={},
    train_module_path="training.py",
    train_params={},
    batch_size=128,
    X_train=X_in,
    y_train=y_in,
    X_test=X_out,
    y_test=y_out,
)
attack = LIRAAttack(n_shadow_models=shadows, report_individual=True, output_dir="run")
output = attack.attack(target)
# what is compared
found = output["attack_experiment_logger"]["attack_instance_logger"]["instance_0"]["individual"]
scores, membership = found["member_prob"], found["member"]
