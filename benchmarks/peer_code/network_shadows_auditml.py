"""auditml: a network taught by shadow networks; audit() itself always takes four of them."""

import numpy as np
import torch
from auditml.attacks.mia_shadow import ShadowMIA
from given import Network, X_in, X_out, network, shadows, y_in, y_out
from torch.utils.data import DataLoader, TensorDataset

members = DataLoader(TensorDataset(torch.from_numpy(X_in), torch.from_numpy(y_in)), batch_size=64)
others = DataLoader(TensorDataset(torch.from_numpy(X_out), torch.from_numpy(y_out)), batch_size=64)
X, y = np.concatenate([X_in, X_out]), np.concatenate([y_in, y_out])
attack = ShadowMIA(
    network,
    shadow_dataset=TensorDataset(torch.from_numpy(X), torch.from_numpy(y)),
    shadow_model_fn=Network,
    num_shadows=shadows,
    shadow_epochs=10,
    num_classes=2,
    batch_size=128,
    learning_rate=1e-2,
    weight_decay=1e-4,
)
found = attack.run(members, others)
# what is compared
scores, membership = found.confidence_scores, found.ground_truth
