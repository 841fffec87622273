package convert

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// maxName is the most letters of a name: that of a host or machine becomes the name of the system.
const maxName = 63

// names are those that are given away, by kind and namespace. Names that objects have keep their owners: anyone who has to get
// another one comes after them. So the same file gives the same names, and one more object at its end changes none.
type names map[string]bool

// give returns the first of some names that is free, or else the last of them with a number.
func (n names) give(kind, namespace string, wishes ...string) string {
	isFree := func(name string) bool { return !n[kind+"\x00"+namespace+"\x00"+name] }
	name := ""
	for _, w := range wishes {
		if name = dnsName(w); isFree(name) {
			break
		}
	}
	for base, i := name, 2; !isFree(name); i++ {
		name = numbered(base, i)
	}
	n[kind+"\x00"+namespace+"\x00"+name] = true
	return name
}

// next returns the first name of a row that is free: prefix-0, prefix-1.
func (n names) next(kind, namespace, prefix string) string {
	base := dnsName(prefix)
	for i := 0; ; i++ {
		name := numbered(base, i)
		if key := kind + "\x00" + namespace + "\x00" + name; !n[key] {
			n[key] = true
			return name
		}
	}
}

// numbered adds a number to a name of at most 63 letters.
func numbered(base string, i int) string {
	suffix := fmt.Sprintf("-%d", i)
	return strings.TrimRight(base[:min(len(base), maxName-len(suffix))], "-") + suffix
}

// dnsName makes a name that Kubernetes takes, of at most 63 letters. One that loses letters gets a few of its digest, so
// that two of them stay two.
func dnsName(s string) string {
	isWhole := true
	out := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r == '.' || r == '_' || r == '/' || r == ' ' || r == ':':
			return '-'
		}
		isWhole = false
		return -1
	}, s)
	if out = strings.Trim(out, "-"); looksSecret(s) {
		isWhole, out = false, ""
	}
	if isWhole && out != "" && len(out) <= maxName {
		return out
	}
	sum := sha256.Sum256([]byte(s))
	digest := hex.EncodeToString(sum[:4])
	out = strings.TrimRight(out[:min(len(out), maxName-len(digest)-1)], "-")
	out = cmp.Or(out, "name")
	return out + "-" + digest
}
