package history

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkFor bounds the search for an order. It grows fast with the requests of a key that stay open.
const checkFor = 2 * time.Minute

// Check fails the test if one program alone could not have answered like that. It says for which key, and writes a page that shows the
// requests of that key, and how far an order exists.
func Check(t testing.TB, all History) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(models)) {
		for _, key := range all.keys(name) {
			one := all.of(name, key).ended()
			result, info := porcupine.CheckOperationsVerbose(models[name].porcupine(), one, checkFor)
			switch result {
			case porcupine.Ok:
				continue
			case porcupine.Unknown:
				t.Errorf("%s %s: no order was found in %s, and none is excluded: %d requests, %d of them without an answer",
					name, key, checkFor, len(one), one.openN())
				continue
			}
			t.Errorf("%s %s: nobody could have answered like this:%s", name, key, one.around(info))
			page := filepath.Join(os.TempDir(), fmt.Sprintf("slipway-history-%s-%s.html", name, strings.ReplaceAll(key, "/", "-")))
			if err := porcupine.VisualizePath(models[name].porcupine(), info, page); err != nil {
				t.Log(err)
			} else {
				t.Logf("%s shows all of it", page)
			}
		}
	}
}

// porcupine is the model as the checker knows it. A request without an answer has its moment where it changes something, or after the end. So
// the checker does not try each moment at which it would change nothing: with twenty of them it would find no end.
func (m model) porcupine() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(s, in, out any) (bool, any) {
			now, r, a := s.(state), in.(Request), out.(Answer)
			if r.Do == end {
				now.isOver = true
				return true, now
			}
			if now.isOver {
				return true, now
			}
			next, isTrue := m(now, r, a)
			if a.Is == Unknown && next == now {
				return false, nil
			}
			return isTrue, next
		},
		DescribeOperation: func(in, out any) string { return text(in.(Request), out.(Answer)) },
		DescribeState:     func(s any) string { return s.(state).text() },
	}
}

// keys are those of the requests of a model.
func (h History) keys(name string) []string {
	set := map[string]bool{}
	for _, op := range h {
		if r := op.Input.(Request); r.Model == name {
			set[r.Key] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// of are the requests about one key: each key has an order of its own. Requests that failed have changed nothing, and say nothing.
func (h History) of(name, key string) (part History) {
	for _, op := range h {
		if r := op.Input.(Request); r.Model == name && r.Key == key && op.Output.(Answer).Is != Failed {
			part = append(part, op)
		}
	}
	return part
}

// end is after all answers.
const end Do = "end"

// ended adds the end.
func (h History) ended() History {
	if len(h) == 0 {
		return h
	}
	last := int64(0)
	for _, op := range h {
		last = max(last, op.Call)
		if op.Return != forever {
			last = max(last, op.Return)
		}
	}
	return append(slices.Clone(h), porcupine.Operation{Input: Request{Do: end}, Output: Answer{Is: Done}, Call: last + 1, Return: last + 2})
}

// Count is how many requests of a model have that outcome.
func (h History) Count(name string, is Outcome) (n int) {
	for _, op := range h {
		if op.Input.(Request).Model == name && op.Output.(Answer).Is == is {
			n++
		}
	}
	return n
}

func (h History) openN() (n int) {
	for _, op := range h {
		if op.Return == forever {
			n++
		}
	}
	return n
}

// aroundN is how many requests are shown before the first one that has no place in an order, and after it.
const aroundN = 8

// around says, for people, what was asked near the first request for which the checker has found no place.
func (h History) around(info porcupine.LinearizationInfo) string {
	var longest []int
	for _, orders := range info.PartialLinearizations() {
		for _, order := range orders {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	order := make([]int, len(h))
	for i := range h {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(h[a].Call - h[b].Call) })
	// A request without an answer needs no place.
	first := slices.IndexFunc(order, func(i int) bool { return h[i].Return != forever && !slices.Contains(longest, i) })
	var b strings.Builder
	for n := max(0, first-aroundN); n < min(len(order), first+aroundN); n++ {
		op, mark := h[order[n]], "  "
		if n == first {
			mark = "> "
		}
		until := "    open"
		if op.Return != forever {
			until = fmt.Sprintf("%8.1f", float64(op.Return-h[order[0]].Call)/1e6)
		}
		from := float64(op.Call-h[order[0]].Call) / 1e6
		fmt.Fprintf(&b, "\n%s%8.1f to %s ms  %s", mark, from, until, text(op.Input.(Request), op.Output.(Answer)))
	}
	return b.String()
}
