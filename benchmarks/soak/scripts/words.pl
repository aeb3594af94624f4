# Hashes, sorting with a callback, regular expressions, and exceptions, which are longjmps.
use strict;
my (%words, $caught);
my $x = 12345;
for my $round (1 .. 200) {
    for (1 .. 20000) {
        $x = ($x * 1103515245 + 12345) % 2147483648;
        $words{ "w" . $x % 5000 }++;
    }
    my $text = join ",", map { "$_=$words{$_}" }
        sort { $words{$a} <=> $words{$b} || $a cmp $b } keys %words;
    $text =~ s/w(\d+)=(\d+)/$2:$1/g;
    $x ^= length $text;
    for my $n (1 .. 2000) {
        eval { die "bad $n\n" if $n % 3 };
        $caught++ if $@;
    }
}
print scalar(keys %words), " $caught $x\n";
