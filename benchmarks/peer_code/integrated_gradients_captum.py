"""captum: integrated gradients of the predicted class, 50 steps as is its default."""

import torch
from captum.attr import IntegratedGradients
from given import X_in, network

inputs = torch.from_numpy(X_in)
found = IntegratedGradients(network).attribute(inputs, target=network(inputs).argmax(dim=1))
# what is compared
values = found.detach().numpy()
