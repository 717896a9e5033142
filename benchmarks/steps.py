"""What is measured of a read: the forward alone, or with the backward."""

FORWARD, BOTH = "forward", "forward+backward"
