package images

import (
	"bufio"
	"bytes"
	"path"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// maxSumsBytes bounds a checksum list; Debian's has 80,000 bytes.
const maxSumsBytes = 8 << 20

// Sums is a list of SHA-256 sums by path.
type Sums struct {
	byPath map[string]inventory.Digest
}

// ParseSums reads what sha256sum writes ("<hex>  <path>", "<hex> *<path>"), its BSD form ("SHA256 (<path>) = <hex>")
// and the checksums of a .treeinfo ("<path> = sha256:<hex>"). Lines in other forms are passed over, because lists
// carry comments, signatures and sums of other kinds. A list without any sum is an error, and so are two for a path.
func ParseSums(text []byte) (Sums, error) {
	s := Sums{byPath: map[string]inventory.Digest{}}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(make([]byte, 0, 4096), 64<<10)
	for lines.Scan() {
		name, hex, ok := sumLine(strings.TrimRight(lines.Text(), "\r"))
		if !ok {
			continue
		}
		d, err := inventory.ParseDigest(hex)
		if err != nil {
			continue
		}
		name = path.Clean(strings.TrimPrefix(name, "./"))
		if old, ok := s.byPath[name]; ok && old != d {
			return Sums{}, inventory.Errorf(inventory.Invalid, "the checksum list has two sums for %q", inventory.Clean(name, 200))
		}
		s.byPath[name] = d
	}
	if err := lines.Err(); err != nil {
		return Sums{}, inventory.Errorf(inventory.Invalid, "the checksum list has a line of more than 64 KiB")
	}
	if len(s.byPath) == 0 {
		return Sums{}, inventory.Errorf(inventory.Invalid, "the checksum list holds no SHA-256 sum").
			WithHint("it should have lines of 64 hex digits, two spaces and a file name")
	}
	return s, nil
}

// sumLine splits a line into path and sum.
func sumLine(line string) (name, hex string, ok bool) {
	if rest, found := strings.CutPrefix(line, "SHA256 ("); found {
		name, hex, ok = strings.Cut(rest, ") = ")
		return name, strings.TrimSpace(hex), ok && name != ""
	}
	if name, hex, ok = strings.Cut(line, "= sha256:"); ok {
		name = strings.TrimSpace(name)
		return name, strings.TrimSpace(hex), name != ""
	}
	if len(line) < 67 || line[64] != ' ' || line[65] != ' ' && line[65] != '*' {
		return "", "", false
	}
	return line[66:], line[:64], true
}

// Find returns the sum for a path. The list may have been made in a folder above or below the one that the path
// counts from, so the one may be the end of the other; the longest agreement wins, and it must be unambiguous.
func (s Sums) Find(name string) (inventory.Digest, bool, error) {
	name = path.Clean(strings.TrimPrefix(name, "./"))
	if d, ok := s.byPath[name]; ok {
		return d, true, nil
	}
	best, found := 0, map[inventory.Digest][]string{}
	for p, d := range s.byPath {
		n := agreement(p, name)
		if n == 0 || n < best {
			continue
		}
		if n > best {
			best, found = n, map[inventory.Digest][]string{}
		}
		found[d] = append(found[d], p)
	}
	switch len(found) {
	case 0:
		return "", false, nil
	case 1:
		for d := range found {
			return d, true, nil
		}
	}
	var paths []string
	for _, p := range found {
		paths = append(paths, p...)
	}
	slices.Sort(paths)
	return "", false, inventory.Errorf(inventory.Invalid, "the checksum list has different sums that could be for %s: %s", name,
		inventory.Clean(strings.Join(paths[:min(len(paths), 5)], ", "), 500)).WithHint("give the file's own sum with --sha256")
}

// agreement counts the path elements of the shorter path if it is the end of the longer one.
func agreement(a, b string) int {
	if len(a) > len(b) {
		a, b = b, a
	}
	if a == b || strings.HasSuffix(b, "/"+a) {
		return strings.Count(a, "/") + 1
	}
	return 0
}

// Match returns the path in the list that a pattern with * stands for; the newest if there are several.
func (s Sums) Match(pattern string) (string, bool) {
	var best string
	for p := range s.byPath {
		if ok, _ := path.Match(pattern, p); ok && (best == "" || newer(p, best)) {
			best = p
		}
	}
	return best, best != ""
}

// newer orders names by the numbers in them: 24.04.10 comes after 24.04.9.
func newer(a, b string) bool {
	for a != "" && b != "" {
		na, nb := digits(a), digits(b)
		if na == 0 || nb == 0 {
			if a[0] != b[0] {
				return a[0] > b[0]
			}
			a, b = a[1:], b[1:]
			continue
		}
		x, y := strings.TrimLeft(a[:na], "0"), strings.TrimLeft(b[:nb], "0")
		if len(x) != len(y) {
			return len(x) > len(y)
		}
		if x != y {
			return x > y
		}
		a, b = a[na:], b[nb:]
	}
	return len(a) > len(b)
}

// digits counts the decimal digits at the beginning.
func digits(s string) int {
	return len(s) - len(strings.TrimLeft(s, "0123456789"))
}
