"""The library: scores × selection × masks over one seam of kernels. It imports torch alone."""
