"""What a line of the port could compute instead, from what tf1 computes."""
