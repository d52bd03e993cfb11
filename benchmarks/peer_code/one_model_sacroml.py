"""SACRO-ML: the worst-case attack with the settings of its example."""

from given import X_in, X_out, model, y_in, y_out
from sacroml.attacks.target import Target
from sacroml.attacks.worst_case_attack import WorstCaseAttack

target = Target(model=model, X_train=X_in, y_train=y_in, X_test=X_out, y_test=y_out)
attack = WorstCaseAttack(
    n_reps=10,
    n_dummy_reps=1,
    train_beta=5,
    test_beta=2,
    test_prop=0.5,
    report_individual=True,
    output_dir="run",
)
output = attack.attack(target)
# what is compared: of ten repetitions the first
first = output["attack_experiment_logger"]["attack_instance_logger"]["instance_0"]["individual"]
scores, membership = first["member_prob"], first["member"]
