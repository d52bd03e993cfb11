"""ART: a forest taught by shadow networks, on the same pool of records."""

import numpy as np
import torch
from art.attacks.inference.membership_inference import MembershipInferenceBlackBox, ShadowModels
from art.estimators.classification.pytorch import PyTorchClassifier
from art.utils import to_categorical
from given import X_in, X_out, network, shadows, y_in, y_out

classifier = PyTorchClassifier(
    network,
    loss=torch.nn.CrossEntropyLoss(),
    optimizer=torch.optim.Adam(network.parameters(), lr=1e-2, weight_decay=1e-4),
    input_shape=(X_in.shape[1],),
    nb_classes=2,
)
X, y = np.concatenate([X_in, X_out]), np.concatenate([y_in, y_out])
shadow_models = ShadowModels(classifier, num_shadow_models=shadows, random_state=0)
members, others = shadow_models.generate_shadow_dataset(X, to_categorical(y))
attack = MembershipInferenceBlackBox(classifier, attack_model_type="rf")
attack.fit(members[0], members[1], others[0], others[1], members[2], others[2])
inferred = attack.infer(X, y, probabilities=True)
# what is compared
scores = inferred.ravel()
membership = np.arange(len(X)) < len(X_in)
