package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestALoaderThatComesIsComparedWithItsFile(t *testing.T) {
	for _, c := range []struct {
		name         string
		got          string
		err          error
		status, says string
	}{
		{"the same bytes", "MZ loader", nil, OK, "9 bytes in 12ms"},
		{"a file that was replaced after the start", "MZ old loader", nil, Warning, "13 bytes that are not those of the file, which has 9"},
		{"the same length with other bytes", "MZ LOADER", nil, Warning, "not those of the file"},
		{"a part of it", "MZ", nil, Warning, "2 bytes"},
		{"nothing", "", errors.New("receive timeout: \x1b[31m"), Failed, "does not come: receive timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := judgeLoader("eno2", "snponly.efi", []byte("MZ loader"), []byte(c.got), 12*time.Millisecond, c.err)
			if k.Name != "TFTP on eno2" || k.Status != c.status || !strings.Contains(k.Detail, c.says) || strings.Contains(k.Detail, "\x1b") {
				t.Errorf("%+v", k)
			}
			if (k.Status == OK) != (k.Hint == "") {
				t.Errorf("status %s with hint %q", k.Status, k.Hint)
			}
		})
	}
}
