"""What people do with the toolkit: each task names its data, its model, its metric, its picture."""
