# Lets the program go on, again and again, as a user would: see inside_gdb.py.
while $soak_goes_on
  continue
  python step()
end
