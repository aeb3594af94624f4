my %words; my $x = 12345;
for my $round (1 .. 40) {
    for (1 .. 20000) { $x = ($x * 1103515245 + 12345) % 2147483648; $words{"w" . $x % 5000}++; }
    my $text = join ",", map { "$_=$words{$_}" } sort keys %words;
    $text =~ s/w(\d+)=(\d+)/$2:$1/g;
    $x ^= length $text;
}
print scalar(keys %words), " $x\n";
