"""Training of neural networks by frameworks of the site: the networks, the scripts that train them, the figures."""
