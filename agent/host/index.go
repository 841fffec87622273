package host

import (
	"bufio"
	"bytes"
	"path"
	"strings"
)

// index is what depmod wrote about the modules of a kernel.
type index struct {
	files   map[string]string   // module name to its file, relative to the folder of the modules
	needs   map[string][]string // module name to the files it needs, the last first to be loaded
	builtin map[string]bool
	before  map[string][]string // soft dependencies: names that are loaded first, if they exist
	aliases map[string][]alias  // by the first letters of the pattern, at most prefixLen and up to the first wildcard
}

type alias struct{ pattern, module string }

// prefixLen reaches to the vendor of a PCI alias, pci:v00008086d...: few patterns share it.
const prefixLen = 13

// canonical is a module's name as the kernel spells it.
func canonical(name string) string { return strings.ReplaceAll(name, "-", "_") }

// moduleName returns the module that a file holds: kernel/drivers/net/virtio_net.ko.xz is virtio_net.
func moduleName(file string) string {
	base, _, _ := strings.Cut(path.Base(file), ".ko")
	return canonical(base)
}

// newIndex reads the texts of modules.dep, modules.alias, modules.builtin and modules.softdep. Lines it cannot read are
// left out.
func newIndex(dep, aliasText, builtin, soft []byte) *index {
	x := &index{
		files: make(map[string]string), needs: make(map[string][]string), builtin: make(map[string]bool),
		before: make(map[string][]string), aliases: make(map[string][]alias),
	}
	lines(dep, func(line string) {
		file, rest, ok := strings.Cut(line, ":")
		if !ok {
			return
		}
		name := moduleName(file)
		x.files[name], x.needs[name] = file, strings.Fields(rest)
	})
	lines(aliasText, func(line string) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != "alias" {
			return
		}
		key := prefix(f[1])
		x.aliases[key] = append(x.aliases[key], alias{f[1], canonical(f[2])})
	})
	lines(builtin, func(line string) { x.builtin[moduleName(line)] = true })
	lines(soft, func(line string) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "softdep" {
			return
		}
		isBefore := false
		for _, word := range f[2:] {
			switch {
			case word == "pre:":
				isBefore = true
			case word == "post:":
				isBefore = false
			case isBefore:
				x.before[canonical(f[1])] = append(x.before[canonical(f[1])], word)
			}
		}
	})
	return x
}

func lines(text []byte, use func(string)) {
	s := bufio.NewScanner(bytes.NewReader(text))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if line := strings.TrimSpace(s.Text()); line != "" && line[0] != '#' {
			use(line)
		}
	}
}

// prefix is the literal beginning of a pattern, cut to prefixLen.
func prefix(pattern string) string {
	if i := strings.IndexAny(pattern, "*?["); i >= 0 {
		pattern = pattern[:i]
	}
	return pattern[:min(len(pattern), prefixLen)]
}

// match returns the modules that say they drive a device with this modalias, each once.
func (x *index) match(modalias string) (modules []string) {
	seen := make(map[string]bool)
	// A pattern is filed under its literal beginning, which may have any length up to prefixLen. A kernel has tens of thousands
	// of patterns; this asks at most 14 short lists.
	for n := min(prefixLen, len(modalias)); n >= 0; n-- {
		for _, a := range x.aliases[modalias[:n]] {
			if !seen[a.module] && glob(a.pattern, modalias) {
				seen[a.module] = true
				modules = append(modules, a.module)
			}
		}
	}
	return modules
}

// glob reports whether s fits a pattern of fnmatch with *, ? and [...]. It needs no memory and, with the last star as
// its only way back, no exponential time.
func glob(pattern, s string) bool {
	p, i, star, mark := 0, 0, -1, 0
	for i < len(s) {
		n, ok := one(pattern, p, s[i])
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case ok:
			p, i = p+n, i+1
		// What followed the last star does not fit here: the star takes one byte more. An earlier star never needs to change,
		// because the last one can take whatever that would have given.
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// one matches a single byte against the element of the pattern at p, and returns how long that element is.
func one(pattern string, p int, c byte) (int, bool) {
	if p >= len(pattern) || pattern[p] == '*' {
		return 0, false
	}
	if pattern[p] == '?' {
		return 1, true
	}
	end := strings.IndexByte(pattern[p:], ']')
	// A bracket that nobody closes is a literal, as in fnmatch(3).
	if pattern[p] != '[' || end < 0 {
		return 1, pattern[p] == c
	}
	set := pattern[p+1 : p+end]
	negated := strings.HasPrefix(set, "!") || strings.HasPrefix(set, "^")
	if negated {
		set = set[1:]
	}
	found := false
	for i := 0; i < len(set); i++ {
		if i+2 < len(set) && set[i+1] == '-' {
			found = found || set[i] <= c && c <= set[i+2]
			i += 2
			continue
		}
		found = found || set[i] == c
	}
	return end + 1, found != negated
}
