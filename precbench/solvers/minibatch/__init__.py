"""Mini-batch methods: Perceptron@k, SGD@k, 1PMB and 2PMB."""
