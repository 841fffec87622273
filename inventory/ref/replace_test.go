package ref

import "testing"

func TestANameIsTakenOutWhereItIsAWordOfItsOwn(t *testing.T) {
	for text, want := range map[string]string{
		"host beta-1 has it":            "host (hidden) has it",
		"beta-1":                        "(hidden)",
		"beta-1.":                       "(hidden).",
		"machine/beta-1: beta-1":        "machine/(hidden): (hidden)",
		"beta-1.example.com":            "(hidden).example.com",
		"of:beta-1,beta-1;(beta-1)":     "of:(hidden),(hidden);((hidden))",
		"--host=beta-1 --off":           "--host=(hidden) --off",
		"the name of beta-10":           "the name of beta-10",
		"x-beta-1 and beta-1-x":         "x-beta-1 and beta-1-x",
		"alphabeta-1":                   "alphabeta-1",
		"MAC 52:54:00:b2:00:01 is beta": "MAC (hidden) is beta",
		"":                              "",
	} {
		if got := Replace(Replace(Replace(text, "beta-1", "(hidden)"), "52:54:00:b2:00:01", "(hidden)"), "", "(hidden)"); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
