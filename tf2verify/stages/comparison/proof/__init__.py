"""Both graphs related: what is proven, and what one side alone has."""
