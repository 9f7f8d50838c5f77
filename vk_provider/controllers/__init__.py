"""The loops of the bursting side: they watch, they write, and ``bursting`` decides."""
