"""Will my code move, and what is left? Assess, translate, check and keep in step a CUDA code base on MUSA."""
