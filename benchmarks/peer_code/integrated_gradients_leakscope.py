"""Leakscope: integrated gradients of the predicted class, 50 steps."""

from given import X_in, network, y_in

import leakscope as ls
from leakscope.channels.explanations import IntegratedGradients
from leakscope.models import as_model

found = IntegratedGradients().observe(as_model(network), ls.Records(X_in, y_in))
# what is compared
values = found
