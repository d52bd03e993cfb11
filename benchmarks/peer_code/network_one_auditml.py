"""auditml: the threshold on the loss, with the report."""

import auditml
import torch
from given import X_in, X_out, network, y_in, y_out
from torch.utils.data import DataLoader, TensorDataset

members = DataLoader(TensorDataset(torch.from_numpy(X_in), torch.from_numpy(y_in)), batch_size=64)
others = DataLoader(TensorDataset(torch.from_numpy(X_out), torch.from_numpy(y_out)), batch_size=64)
results = auditml.audit(network, members, others, attacks=["mia_threshold"])
results.report("run", open_browser=False)
# what is compared, which it keeps and does not show
_, found = results._raw_results["mia_threshold"]
scores, membership = found.confidence_scores, found.ground_truth
