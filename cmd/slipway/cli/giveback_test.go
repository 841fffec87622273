package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// residentOfFiles is how much of its files a process has mapped, in KiB.
func residentOfFiles(t *testing.T) (n int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssFile:"); ok {
			if _, err := fmt.Sscan(rest, &n); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}

func TestPagesOfTheProgramAreGivenBackAndComeBack(t *testing.T) {
	before := residentOfFiles(t)
	if err := giveBack(); err != nil {
		t.Fatal(err)
	}
	if after := residentOfFiles(t); after > before/2 {
		t.Errorf("%d KiB of files were mapped, and %d are", before, after)
	}
	if s := fmt.Sprint("the program ", "runs on"); s != "the program runs on" {
		t.Error(s)
	}
}

func TestOnlyWhatWasNeverWrittenIsGivenBack(t *testing.T) {
	const smaps = `00400000-01a8c000 r--p 00000000 fe:00 10013092                           /bin/slipway
Rss:                3936 kB
Anonymous:             0 kB
VmFlags: rd mr mw me sd
01a8c000-04ed1000 r-xp 0168c000 fe:00 10013092                           /bin/slipway
Anonymous:             0 kB
0832d000-08330000 r--p 07f2c000 fe:00 10013092                           /bin/slipway
Anonymous:             4 kB
08330000-08478000 rw-p 07f2f000 fe:00 10013092                           /bin/slipway
Anonymous:             0 kB
7f0000000000-7f0000001000 r--p 00000000 fe:00 77                         /lib/libc.so
Anonymous:             0 kB
7f0000002000-7f0000003000 r--p 00000000 00:00 0
Anonymous:             0 kB
`
	got, err := readOnly(strings.NewReader(smaps), "/bin/slipway")
	if err != nil || !slices.Equal(got, []span{{0x400000, 0x1a8c000}, {0x1a8c000, 0x4ed1000}}) {
		t.Errorf("%x, %v", got, err)
	}
}
