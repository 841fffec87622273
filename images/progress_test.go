package images

import (
	"testing"
	"time"
)

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
