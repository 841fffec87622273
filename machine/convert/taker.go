package convert

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// taker reads an object field by field and remembers which it has read, so that what nobody asked for can be named.
type taker struct {
	root  map[string]any
	taken map[string]bool
}

func newTaker(root map[string]any) *taker { return &taker{root: root, taken: map[string]bool{}} }

// get returns what stands at a path, nil for nothing. All below it counts as read.
func (t *taker) get(path ...string) any {
	t.taken[strings.Join(path, ".")] = true
	var v any = t.root
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}

// has reports whether something stands at a path, which does not count as reading it.
func (t *taker) has(path ...string) bool {
	key := strings.Join(path, ".")
	was := t.taken[key]
	v := t.get(path...)
	if !was {
		delete(t.taken, key)
	}
	return v != nil
}

// text returns a scalar as text, "" for anything else.
func (t *taker) text(path ...string) string { return scalar(t.get(path...)) }

// scalar writes a scalar as text.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool, int, int64, uint64, float64:
		return fmt.Sprint(v)
	}
	return ""
}

func (t *taker) flag(path ...string) bool {
	b, _ := t.get(path...).(bool)
	return b
}

func (t *taker) number(path ...string) (int, bool) {
	n, err := strconv.Atoi(t.text(path...))
	return n, err == nil
}

func (t *taker) list(path ...string) []any {
	l, _ := t.get(path...).([]any)
	return l
}

func (t *taker) object(path ...string) map[string]any {
	m, _ := t.get(path...).(map[string]any)
	return m
}

// texts returns a map of texts, nil for an empty one.
func (t *taker) texts(path ...string) map[string]string { return textsOf(t.object(path...)) }

func textsOf(m map[string]any) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = scalar(v)
	}
	return out
}

// ignore counts paths as read: nothing is lost when they are left out.
func (t *taker) ignore(paths ...string) {
	for _, p := range paths {
		t.taken[p] = true
	}
}

// left returns the paths of what was not read, without any values. Keys are part of paths, so odd ones are cleaned.
func (t *taker) left() []string {
	var out []string
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if t.taken[path] {
			return
		}
		m, isMap := v.(map[string]any)
		under := path + "."
		isOpened := path == "" || slices.ContainsFunc(slices.Collect(maps.Keys(t.taken)), func(k string) bool { return strings.HasPrefix(k, under) })
		if isMap && isOpened {
			for _, k := range slices.Sorted(maps.Keys(m)) {
				walk(strings.TrimPrefix(path+"."+k, "."), m[k])
			}
			return
		}
		if v != nil {
			out = append(out, oneLine(path))
		}
	}
	walk("", t.root)
	return out
}

// oneLine makes a text fit for a comment.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == '\u2028' || r == '\u2029' || r == '\ufeff' || r == '\ufffd' {
			return ' '
		}
		return r
	}, s)
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200]) + "..."
	}
	return s
}
