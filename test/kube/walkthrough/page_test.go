package walkthrough

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// md writes Markdown with ”' for the fence, which Go has no way to quote.
func md(text string) string { return strings.ReplaceAll(text, "'''", "```") }

func TestAPageIsReadAsItsBlocks(t *testing.T) {
	for _, c := range []struct {
		name, page string
		want       []Block
		fails      string
	}{
		{name: "blocks of shell stand in order", page: "# A\n'''sh\necho 1\necho 2\n'''\ntext\n\n'''sh\necho 3\n'''\n", want: []Block{{Line: 2, Shell: "echo 1\necho 2"}, {Line: 8, Shell: "echo 3"}}},
		{name: "a block of text is what the one before prints", page: "'''sh\ndate\n'''\n\n'''text\nMonday\n'''\n", want: []Block{{Line: 1, Shell: "date", Want: "Monday"}}},
		{name: "a block of text behind other words is no output", page: "'''sh\ndate\n'''\nSo:\n'''text\nMonday\n'''\n", want: []Block{{Line: 1, Shell: "date"}}},
		{name: "other languages are not run", page: "'''yaml\na: 1\n'''\n'''sh\nx\n'''\n'''yaml\n'''\n'''text\nno\n'''\n", want: []Block{{Line: 4, Shell: "x"}}},
		{name: "a wait is for the next block only", page: "<!-- wait 2m -->\n'''sh\na\n'''\n'''sh\nb\n'''", want: []Block{{Line: 2, Shell: "a", Wait: 2 * time.Minute}, {Line: 5, Shell: "b"}}},
		{name: "a skipped block says why", page: "<!-- skip: needs the internet -->\n\n'''sh\na\n'''\n'''text\nb\n'''", want: []Block{{Line: 3, Shell: "a", Skip: "needs the internet", Want: "b"}}},
		{name: "what only a test needs is hidden", page: "<!-- run\nrack on\n-->\n", want: []Block{{Line: 1, Shell: "rack on", IsHidden: true}}},
		{name: "a block says on which machines it runs", page: "<!-- on node1 node2 -->\n<!-- wait 1s -->\n'''sh\na\n'''\n'''sh\nb\n'''", want: []Block{{Line: 3, Shell: "a", On: "node1 node2", Wait: time.Second}, {Line: 6, Shell: "b"}}},
		{name: "a machine before no block is an error", page: "<!-- on node1 -->\ntext\n", fails: "line 2: a comment"},
		{name: "a fence inside of a block of another language is not a block", page: "'''yaml\n<!-- wait 1s -->\n'''\n", want: nil},
		{name: "a block that does not end is an error", page: "'''sh\na\n", fails: "line 1: ```sh does not end"},
		{name: "an unknown comment is an error", page: "<!-- wiat 60s -->\n'''sh\na\n'''", fails: "line 1: <!-- wiat 60s -->"},
		{name: "a wait that is no time is an error", page: "<!-- wait long -->\n'''sh\na\n'''", fails: "not a time"},
		{name: "a skip before no block is an error", page: "<!-- skip: why -->\ntext\n", fails: "line 2: a comment"},
		{name: "a skip at the end is an error", page: "<!-- skip: why -->\n", fails: "at the end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse(md(c.page))
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("%v does not say %q", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestOutputIsComparedAsPeopleDo(t *testing.T) {
	for _, c := range []struct {
		name, want, got string
		is              bool
	}{
		{"the same is the same", "a b\nc", "a b\nc\n", true},
		{"columns may be wider", "NAME   PHASE\nr1 Free", "NAME      PHASE\nr1        Free\n", true},
		{"another word is not the same", "r1 Free", "r1 Busy", false},
		{"more at the end is not the same", "r1", "r1 r2", false},
		{"more at the beginning is not the same", "r2", "r1 r2", false},
		{"dots are any text", "a ... d", "a b\nc d", true},
		{"dots are no text as well", "a ... d", "a d", true},
		{"dots at the end are any end", "a ...", "a", true},
		{"dots at the beginning are any beginning", "... d", "a b d", true},
		{"dots do not make up for what is missing", "a ... d", "a b c", false},
		{"dots inside of a word", "10.0.0...:80", "10.0.0.7:80", true},
		{"a dot is a dot", "1.2", "1x2", false},
		{"nothing wanted is anything", "", "x", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if Matches(c.want, c.got) != c.is {
				t.Errorf("Matches(%q, %q) is %v", c.want, c.got, !c.is)
			}
		})
	}
}

func newShell(t *testing.T) *Shell {
	t.Helper()
	s, err := NewShell(t.TempDir(), []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestBlocksRunInOneShell(t *testing.T) {
	s := newShell(t)
	run := func(b Block) (string, error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return s.Run(ctx, b)
	}
	for _, c := range []struct {
		name  string
		block Block
		want  string
		fails string
	}{
		{name: "a block sets a variable", block: Block{Shell: "x=7\nmkdir sub\ncd sub"}},
		{name: "the next one has it, and the folder", block: Block{Shell: `echo "$x ${PWD##*/}"; echo err >&2`}, want: "7 sub\nerr\n"},
		{name: "what runs in the background outlives its block", block: Block{Shell: "sleep 600 &\npid=$!"}},
		{name: "and is there in the next", block: Block{Shell: "kill -0 $pid"}},
		{name: "a block that waits is tried until it succeeds", block: Block{Shell: "echo x >>n; [ $(wc -l <n) -ge 3 ]; echo done", Wait: time.Minute}, want: "done\n"},
		{name: "a block that waits is tried until it prints what it has to", block: Block{Shell: "echo x >>m; wc -l <m", Want: "3", Wait: time.Minute}, want: "3\n"},
		{name: "one that waits too long fails, at any of its lines", block: Block{Shell: "false\ntrue", Wait: time.Millisecond}, fails: "it ended with 1"},
		{name: "the shell goes on after it", block: Block{Shell: `echo "$x"`}, want: "7\n"},
		{name: "other output than the page says is a failure", block: Block{Shell: "echo a", Want: "b"}, fails: "does not print"},
		{name: "a line that fails is a failure, and what it said is there", block: Block{Shell: "echo why\nfalse\necho not reached"}, want: "why\n", fails: "ended the shell"},
	} {
		got, err := run(c.block)
		if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.want != "" && got != c.want {
			t.Errorf("%s: it printed %q", c.name, got)
		}
	}
}

func TestAVariableThatIsNotSetFails(t *testing.T) {
	if _, err := newShell(t).Run(t.Context(), Block{Shell: "echo $nothing"}); err == nil {
		t.Error("it ran")
	}
}

func TestABlockThatHangsIsEndedWithItsTime(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := newShell(t).Run(ctx, Block{Shell: "sleep 600"}); err == nil || !strings.Contains(err.Error(), "did not end") {
		t.Errorf("%v", err)
	}
}

func TestBothPagesCanBeRead(t *testing.T) {
	for _, name := range []string{"walkthrough-standalone.md", "walkthrough-cluster-api.md"} {
		page, err := os.ReadFile(filepath.Join("../../../docs", name))
		if err != nil {
			t.Fatal(err)
		}
		blocks, err := Parse(string(page))
		if err != nil || len(blocks) < 5 {
			t.Errorf("%s: %d blocks, %v", name, len(blocks), err)
		}
	}
}
