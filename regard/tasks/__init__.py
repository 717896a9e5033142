"""What people do with it: each task names its data, its model, its metric and its picture."""
