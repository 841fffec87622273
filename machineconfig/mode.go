package machineconfig

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Mode is the permissions of a file, written as three or four octal digits: 0644.
type Mode uint32

var modeRE = regexp.MustCompile(`^(0o?)?[0-7]{3,4}$`)

// Or returns the mode, or the default if it is 0.
func (m Mode) Or(d Mode) Mode {
	return cmp.Or(m, d)
}

func (m Mode) String() string { return fmt.Sprintf("%04o", uint32(m)) }

// MarshalText writes four octal digits.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads octal digits.
func (m *Mode) UnmarshalText(text []byte) error {
	s := string(text)
	if !modeRE.MatchString(s) {
		return fmt.Errorf("%q is not a mode: write three or four octal digits, such as 0644", s)
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(s, "0o"), 8, 32)
	if err != nil {
		return fmt.Errorf("%q is not a mode: write three or four octal digits, such as 0644", s)
	}
	*m = Mode(n)
	return nil
}

// UnmarshalYAML reads the digits as they are written: 644 and 0644 are the same.
func (m *Mode) UnmarshalYAML(n *yaml.Node) error { return m.UnmarshalText([]byte(n.Value)) }

// volatile are folders that are empty after every boot.
var volatile = []string{"/run", "/tmp", "/dev", "/proc", "/sys"}

func isVolatile(p string) bool {
	for _, v := range volatile {
		if p == v || strings.HasPrefix(p, v+"/") {
			return true
		}
	}
	return strings.HasPrefix(p, "/var/run/")
}
