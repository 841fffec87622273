package cli

import (
	"testing"
	"testing/quick"

	"slipway.dev/slipway/images"
)

func TestBar(t *testing.T) {
	for name, c := range map[string]struct {
		p     images.Progress
		width int
		want  string
	}{
		"half of a file": {
			images.Progress{Step: images.StepFetch, File: "initrd.gz", FileN: 2, FilesN: 2, Bytes: 20_400_000, TotalBytes: 40_800_000, BytesPerSecond: 10_200_000},
			100,
			"initrd.gz (2/2) [==================>                 ]  50%  20.4 MB of 40.8 MB  10.2 MB/s  2 s left",
		},
		"the whole file": {
			images.Progress{Step: images.StepFetch, File: "linux", Bytes: 8_222_656, TotalBytes: 8_222_656, BytesPerSecond: 8_222_656},
			100,
			"linux [========================================] 100%  8.22 MB of 8.22 MB  8.22 MB/s",
		},
		"of unknown length":             {images.Progress{Step: images.StepFetch, File: "linux", Bytes: 1500, BytesPerSecond: 500}, 80, "linux  1.50 kB  500 B/s"},
		"nothing yet":                   {images.Progress{Step: images.StepFetch, File: "linux", TotalBytes: 1000}, 60, "linux [>                              ]   0%  0 B of 1.00 kB"},
		"more than was announced":       {images.Progress{Step: images.StepFetch, File: "x", Bytes: 2000, TotalBytes: 1000}, 60, "x [===============================] 100%  2.00 kB of 1.00 kB"},
		"no room for the bar":           {images.Progress{Step: images.StepFetch, File: "linux", Bytes: 1, TotalBytes: 2}, 30, "linux   50%  1 B of 2 B"},
		"no room for the name":          {images.Progress{Step: images.StepFetch, File: "a-very-long-name", Bytes: 1, TotalBytes: 2}, 20, " 50%  1 B of 2 B"},
		"no room at all":                {images.Progress{Step: images.StepFetch, File: "linux", Bytes: 1, TotalBytes: 2}, 0, ""},
		"looking for the files":         {images.Progress{Step: images.StepResolve, FilesN: 2}, 80, "finding the files"},
		"checking what is here already": {images.Progress{Step: images.StepCheck, File: "linux", FileN: 1, FilesN: 2, Bytes: 50, TotalBytes: 100}, 80, "checking linux (1/2)   50%  50 B of 100 B"},
		"registering":                   {images.Progress{Step: images.StepStore, File: "linux", Bytes: 9}, 80, "registering the image"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := drawBar(c.p, c.width); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestBarNeverPanicsAndNeverOverflowsItsLine(t *testing.T) {
	if err := quick.Check(func(name string, done, total, rate int64, width uint8) bool {
		p := images.Progress{Step: images.StepFetch, File: name, Bytes: max(done, 0) >> 8, TotalBytes: max(total, 0) >> 8, BytesPerSecond: max(rate, 0)}
		return len([]rune(drawBar(p, int(width)))) <= int(width)
	}, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}
