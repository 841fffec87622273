package ref

import (
	"slices"
	"testing"
)

type row struct {
	Name string
	Refs []Ref
	of   []Ref
}

type referrer struct{ Name string }

func (r *referrer) References() []Ref { return []Ref{Pool(r.Name)} }

func TestTheReferencesOfAnAnswerAreFoundWhereverTheyAre(t *testing.T) {
	answer := struct {
		Items []row
		By    map[string]any
		One   *referrer
		None  *referrer
		Raw   []byte
	}{
		Items: []row{{Name: "a", Refs: []Ref{Host("web-1")}, of: []Ref{Host("web-9")}}, {Name: "b"}},
		By:    map[string]any{"x": row{Refs: []Ref{Machine("m")}}}, One: &referrer{"beta"}, Raw: []byte("x"),
	}
	if got, want := Within(&answer), []Ref{Host("web-1"), Machine("m"), Pool("beta")}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := Within(nil); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}

func TestATextKeepsTheReferencesThatItNames(t *testing.T) {
	unknown := Ref{Kind: Unknown}
	got := In("web-1 goes before m", Host("web-1"), Machine("m"), Host("web-2"), Host("web-1"), Host(""), unknown)
	if want := []Ref{Host("web-1"), Machine("m"), unknown}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestABookKeepsEachReferenceOnce(t *testing.T) {
	var none *Book
	none.Add(Host("a"))
	var b Book
	b.Add(Host("a"), Host("a"))
	b.Add()
	if got := b.All(); !slices.Equal(got, []Ref{Host("a")}) || none.All() != nil {
		t.Errorf("kept %v and %v", got, none.All())
	}
}
