package postgres

import (
	"strings"
	"testing"
)

// Whole parts share a savepoint. One that began in an earlier way, and one that still runs, keep their own.
func TestWholePartsShareASavepoint(t *testing.T) {
	parts := map[byte]*part{'a': {}, 'b': {}, 'c': {}, 'd': {}}
	for _, c := range []struct{ steps, want string }{
		{"begin", "begin"},
		{"Sa 1a Ra", "Sa 1a Ra"}, // one part alone
		{"begin Sa 1a 2a Ra Sb 1b Rb count COMMIT", "begin SAVEPOINT 1a 2a 1b RELEASE count COMMIT"},
		{"1a Ra Sb 1b Rb Sc Rc Sd 1d", "1a Ra SAVEPOINT 1b RELEASE Sd 1d"},
		{"1a Ra Sb 1b Rb Sc 1c", "1a Ra Sb 1b Rb Sc 1c"},
	} {
		var steps []step
		for name := range strings.FieldsSeq(c.steps) {
			s := step{query: name, part: parts[name[len(name)-1]]}
			switch {
			case s.part != nil && name[0] == 'S':
				s.query = savepoint
			case s.part != nil && name[0] == 'R':
				s.query = releasePoint
			}
			steps = append(steps, s)
		}
		var got []string
		for _, s := range packed(steps) {
			name := s.query
			switch s.query {
			case savepoint, releasePoint:
				for letter, p := range parts {
					if p == s.part {
						name = s.query[:1] + string(letter)
					}
				}
			case packPoint, releasePack:
				name, _, _ = strings.Cut(s.query, " ")
			}
			got = append(got, name)
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s became %s, want %s", c.steps, got, c.want)
		}
	}
}
