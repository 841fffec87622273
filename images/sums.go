package images

import (
	"bufio"
	"bytes"
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/maruel/natural"

	"slipway.dev/slipway/inventory"
)

// maxSumsBytes bounds a checksum list; Debian's has 80,000 bytes.
const maxSumsBytes = 8 << 20

// Sum has the sums of a file in a list: one of them, or both.
type Sum struct {
	SHA256 inventory.Digest // "" when the list has none
	SHA512 string           // hex, "" when the list has none
}

// Sums is a list of SHA-256 and SHA-512 sums by path.
type Sums struct {
	byPath map[string]Sum
	// bare are sums without a name, as in FILE.sha256: they are about the only file there is.
	bare []Sum
}

// ParseSums reads these forms of a line:
//
//	<hex>  <path>            sha256sum and sha512sum, in text mode
//	<hex> *<path>            the same in binary mode
//	SHA256 (<path>) = <hex>  BSD
//	SHA2-256(<path>)= <hex>  openssl
//	<path> = sha256:<hex>    the checksums of a .treeinfo
//	<hex>                    a sum alone
//
// It ignores other lines, because lists carry comments, signatures and sums of other kinds. A list without any sum is
// Invalid, and so are two different sums of one kind for a path.
func ParseSums(text []byte) (Sums, error) {
	s := Sums{byPath: map[string]Sum{}}
	lines := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	lines.Buffer(make([]byte, 0, 4096), 64<<10)
	isWeak := false
	for lines.Scan() {
		name, hex, ok := sumLine(strings.TrimRight(lines.Text(), "\r"))
		if !ok {
			continue
		}
		sum, ok := readSum(hex)
		if !ok {
			isWeak = isWeak || isHex(hex, 32) || isHex(hex, 40)
			continue
		}
		if name == "" || name == "-" {
			s.bare = append(s.bare, sum)
			continue
		}
		name = path.Clean(strings.TrimPrefix(name, "./"))
		old := s.byPath[name]
		if old.SHA256 != "" && sum.SHA256 != "" && old.SHA256 != sum.SHA256 || old.SHA512 != "" && sum.SHA512 != "" && old.SHA512 != sum.SHA512 {
			return Sums{}, inventory.Errorf(inventory.Invalid, "the checksum list has two sums for %q", inventory.Clean(name, 200))
		}
		s.byPath[name] = Sum{SHA256: cmp.Or(sum.SHA256, old.SHA256), SHA512: cmp.Or(sum.SHA512, old.SHA512)}
	}
	switch {
	case lines.Err() != nil:
		return Sums{}, inventory.Errorf(inventory.Invalid, "the checksum list has a line of more than 64 KiB")
	case len(s.byPath)+len(s.bare) > 0:
		return s, nil
	case kindOf(text, nil).isNothing:
		return Sums{}, inventory.Errorf(inventory.Invalid, "the checksum list is %s", kindOf(text, nil).name).WithHint("%s", pageWay)
	case isWeak:
		return Sums{}, inventory.Errorf(inventory.Invalid, "the checksum list has MD5 or SHA-1 sums only, which can be forged").
			WithHint("name a list of SHA-256 or SHA-512 sums, or give the file's own sum with --sha256")
	}
	return Sums{}, inventory.Errorf(inventory.Invalid, "the checksum list holds no SHA-256 or SHA-512 sum").
		WithHint("it should have lines of 64 or 128 hex digits, two spaces and a file name")
}

func isHex(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// readSum reads a sum by its length.
func readSum(hex string) (Sum, bool) {
	switch {
	case isHex(hex, 64):
		return Sum{SHA256: inventory.Digest("sha256:" + strings.ToLower(hex))}, true
	case isHex(hex, 128):
		return Sum{SHA512: strings.ToLower(hex)}, true
	}
	return Sum{}, false
}

// bsdRE is the BSD form and that of openssl; a name may hold brackets.
var bsdRE = regexp.MustCompile(`^(?:SHA2?-?(?:256|512)) ?\((.+)\) ?= ?([0-9A-Fa-f]+)$`)

// sumLine splits a line into path and sum; the path is empty when the sum stands alone.
func sumLine(line string) (name, hex string, ok bool) {
	if m := bsdRE.FindStringSubmatch(strings.TrimRight(line, " \t")); m != nil {
		return m[1], m[2], true
	}
	for _, kind := range []string{"= sha256:", "= sha512:"} {
		if name, hex, ok = strings.Cut(line, kind); ok {
			name = strings.TrimSpace(name)
			return name, strings.TrimSpace(hex), name != ""
		}
	}
	isEscaped := strings.HasPrefix(line, "\\") // of GNU, when the name has a backslash or a line end
	line = strings.TrimPrefix(line, "\\")
	n := len(line) - len(strings.TrimLeft(line, "0123456789abcdefABCDEF"))
	hex, name = line[:n], line[n:]
	if n < 32 || name != "" && name[0] != ' ' && name[0] != '\t' {
		return "", "", false
	}
	switch {
	case strings.HasPrefix(name, "  "), strings.HasPrefix(name, " *"):
		name = name[2:]
	default:
		name = strings.TrimSpace(name)
	}
	if isEscaped {
		name = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r").Replace(name)
	}
	return name, hex, true
}

// Alone returns the sum of a list that holds one sum and no name.
func (s Sums) Alone() (Sum, bool) {
	if len(s.byPath) == 0 && len(s.bare) == 1 {
		return s.bare[0], true
	}
	return Sum{}, false
}

// Find returns the sum for a path. A publisher may have made the list in a folder above or below the one that the
// path begins in. Find therefore accepts an entry when one of both paths is the end of the other. The longest
// agreement wins; two sums of equal agreement are Invalid.
func (s Sums) Find(name string) (Sum, bool, error) {
	name = path.Clean(strings.TrimPrefix(name, "./"))
	if d, ok := s.byPath[name]; ok {
		return d, true, nil
	}
	best, found := 0, map[Sum][]string{}
	for p, d := range s.byPath {
		n := agreement(p, name)
		if n == 0 || n < best {
			continue
		}
		if n > best {
			best, found = n, map[Sum][]string{}
		}
		found[d] = append(found[d], p)
	}
	switch len(found) {
	case 0:
		return Sum{}, false, nil
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
	return Sum{}, false, inventory.Errorf(inventory.Invalid, "the checksum list has different sums that could be for %s: %s", name,
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

// Match returns the path in the list that a pattern with * fits, and of several the newest.
func (s Sums) Match(pattern string) (string, bool) {
	var best string
	for p := range s.byPath {
		if ok, _ := path.Match(pattern, p); ok && (best == "" || natural.Less(best, p)) {
			best = p
		}
	}
	return best, best != ""
}
