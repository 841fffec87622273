package images

import (
	"testing"
	"testing/quick"
	"time"
)

func TestBar(t *testing.T) {
	for name, c := range map[string]struct {
		p     Progress
		width int
		want  string
	}{
		"half of a file": {
			Progress{Step: StepFetch, File: "initrd.gz", FileN: 2, FilesN: 2, Bytes: 20_400_000, TotalBytes: 40_800_000, BytesPerSecond: 10_200_000},
			100,
			"initrd.gz (2/2) [==================>                 ]  50%  20.4 MB of 40.8 MB  10.2 MB/s  2 s left",
		},
		"the whole file": {
			Progress{Step: StepFetch, File: "linux", Bytes: 8_222_656, TotalBytes: 8_222_656, BytesPerSecond: 8_222_656},
			100,
			"linux [========================================] 100%  8.22 MB of 8.22 MB  8.22 MB/s",
		},
		"of unknown length":             {Progress{Step: StepFetch, File: "linux", Bytes: 1500, BytesPerSecond: 500}, 80, "linux  1.50 kB  500 B/s"},
		"nothing yet":                   {Progress{Step: StepFetch, File: "linux", TotalBytes: 1000}, 60, "linux [>                              ]   0%  0 B of 1.00 kB"},
		"more than was announced":       {Progress{Step: StepFetch, File: "x", Bytes: 2000, TotalBytes: 1000}, 60, "x [===============================] 100%  2.00 kB of 1.00 kB"},
		"no room for the bar":           {Progress{Step: StepFetch, File: "linux", Bytes: 1, TotalBytes: 2}, 30, "linux   50%  1 B of 2 B"},
		"no room for the name":          {Progress{Step: StepFetch, File: "a-very-long-name", Bytes: 1, TotalBytes: 2}, 20, " 50%  1 B of 2 B"},
		"no room at all":                {Progress{Step: StepFetch, File: "linux", Bytes: 1, TotalBytes: 2}, 0, ""},
		"looking for the files":         {Progress{Step: StepResolve, FilesN: 2}, 80, "finding the files"},
		"checking what is here already": {Progress{Step: StepCheck, File: "linux", FileN: 1, FilesN: 2, Bytes: 50, TotalBytes: 100}, 80, "checking linux (1/2)   50%  50 B of 100 B"},
		"registering":                   {Progress{Step: StepStore, File: "linux", Bytes: 9}, 80, "registering the image"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Bar(c.p, c.width); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestBarNeverPanicsAndNeverOverflowsItsLine(t *testing.T) {
	if err := quick.Check(func(name string, done, total, rate int64, width uint8) bool {
		p := Progress{Step: StepFetch, File: name, Bytes: max(done, 0) >> 8, TotalBytes: max(total, 0) >> 8, BytesPerSecond: max(rate, 0)}
		return len([]rune(Bar(p, int(width)))) <= int(width)
	}, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.00 kB", 9_994: "9.99 kB", 9_996: "10.0 kB", 99_949: "99.9 kB",
		99_960: "100 kB", 999_499: "999 kB", 999_600: "1.00 MB", 40_810_276: "40.8 MB", 20 << 30: "21.5 GB", 1<<63 - 1: "9.22 EB",
	} {
		if got := FormatBytes(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestMeterFollowsTheRateOfTheLastSeconds(t *testing.T) {
	var m meter
	now := time.Unix(0, 0)
	rate := int64(0)
	run := func(seconds int, perTick int64) {
		for range seconds * 2 {
			now = now.Add(500 * time.Millisecond)
			rate, _ = m.add(perTick, now)
		}
	}
	m.add(0, now)
	run(1, 500)
	if rate != 1000 {
		t.Errorf("after the first second: %d", rate)
	}
	run(60, 5_000_000)
	if rate < 9_900_000 || rate > 10_000_000 {
		t.Errorf("after a minute at 10 MB/s: %d", rate)
	}
	run(30, 0)
	if rate > 10_000 {
		t.Errorf("half a minute after it stopped: %d", rate)
	}
}
