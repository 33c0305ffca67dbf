"""Why a stage failed: where the sides part first, and the mistake behind it."""
