"""pyDVL: influence functions by the whole Hessian, of the model that scikit-learn has fitted."""

import torch
from given import X_in, X_out, coef, intercept, y_in, y_out
from pydvl.influence.torch import DirectInfluence
from torch.utils.data import DataLoader, TensorDataset

train = torch.from_numpy(X_in), torch.from_numpy(y_in).double()[:, None]
test = torch.from_numpy(X_out), torch.from_numpy(y_out).double()[:, None]
linear = torch.nn.Linear(X_in.shape[1], 1).double()
linear.weight.data = torch.from_numpy(coef)
linear.bias.data = torch.from_numpy(intercept)
loss = torch.nn.functional.binary_cross_entropy_with_logits
influence = DirectInfluence(linear, loss, regularization=1 / len(X_in))
influence = influence.fit(DataLoader(TensorDataset(*train), batch_size=len(X_in)))
found = influence.influences(*test, *train)
# what is compared
values = found.detach().numpy() / len(X_in)
