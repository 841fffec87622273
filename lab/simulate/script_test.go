package simulate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tape is verbs that only write down what they are asked.
type tape struct {
	files map[string]string
	lines []string
	limit int
}

func (t *tape) note(format string, args ...any) error {
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
	if t.limit > 0 && len(t.lines) > t.limit {
		return context.DeadlineExceeded
	}
	return nil
}

func (t *tape) fetch(_ context.Context, url string) (download, error) {
	if err := t.note("fetch %s", url); err != nil {
		return download{}, err
	}
	body, ok := t.files[url]
	if !ok {
		return download{}, errors.New("HTTP 404")
	}
	b := []byte(body)
	return download{name: lastName(url), size: int64(len(b)), head: b[:min(len(b), headBytes)], body: b}, nil
}
func (t *tape) pause(_ context.Context, d time.Duration) error { return t.note("sleep %s", d) }
func (t *tape) say(line string)                                { _ = t.note("echo %s", line) }
func (t *tape) network(_ context.Context, withRouter bool) error {
	return t.note("address, with router %t", withRouter)
}

func testSettings() settings {
	a := netip.MustParseAddr("10.0.0.9")
	s := newSettings(capturedGuest, true, a, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.1"), "x")
	s["asset"] = "a || b # c"
	return s
}

func TestScripts(t *testing.T) {
	for _, c := range []struct {
		name   string
		script string
		files  map[string]string
		want   []string
		end    endHow
		args   string
		fails  string // part of the error
	}{
		{
			name:   "a kernel with its initrds boots with its arguments",
			script: "kernel http://s/vmlinuz a=${ip} b || goto no\ninitrd http://s/initrd || goto no\nboot || goto no\n:no\nexit 1",
			files:  map[string]string{"http://s/vmlinuz": "K", "http://s/initrd": "I"},
			want:   []string{"fetch http://s/vmlinuz", "fetch http://s/initrd"}, end: endBoot, args: "a=10.0.0.9 b",
		},
		{
			name:   "imgargs replaces the arguments of a named kernel",
			script: "imgfetch --name k http://s/vmlinuz\nimgselect k\nimgargs k one two\nboot",
			files:  map[string]string{"http://s/vmlinuz": "K"}, want: []string{"fetch http://s/vmlinuz"}, end: endBoot, args: "one two",
		},
		{
			name: "a failed command stops the script", script: "imgfetch http://s/none\necho never",
			want: []string{"fetch http://s/none"}, end: endExit, fails: "404",
		},
		{
			name: "two bars swallow a failure", script: "imgfetch http://s/none ||\necho on",
			want: []string{"fetch http://s/none", "echo on"}, end: endExit,
		},
		{name: "two bars skip the rest after success", script: "echo a || echo b\necho c", want: []string{"echo a", "echo c"}, end: endExit},
		{
			name: "two ands run on after success only", script: "iseq a a && echo same\niseq a b && echo no ||\necho end",
			want: []string{"echo same", "echo end"}, end: endExit, fails: "",
		},
		{
			name: "isset fails for an empty variable", script: "isset ${nothing} && echo no ||\nisset ${mac} && echo yes\nexit",
			want: []string{"echo yes"}, end: endExit,
		},
		{
			name: "a loop counts", script: "set n:int32 0\n:again\ninc n\necho ${n}\niseq ${n} 3 && exit ||\nsleep 2\ngoto again",
			want: []string{"echo 1", "sleep 2s", "echo 2", "sleep 2s", "echo 3"}, end: endExit,
		},
		{
			name: "a chained script shares variables and comes back", script: "set a 1\nchain http://s/two\necho back ${b}",
			files: map[string]string{"http://s/two": "#!ipxe\necho in ${a}\nset b 2\n"},
			want:  []string{"fetch http://s/two", "echo in 1", "echo back 2"}, end: endExit,
		},
		{
			name: "chain with replace does not come back", script: "chain --replace http://s/two\necho back",
			files: map[string]string{"http://s/two": "#!ipxe\necho in\n"}, want: []string{"fetch http://s/two", "echo in"}, end: endExit,
		},
		{
			name: "chain with timeout and autofree", script: "chain --timeout 15000 --autofree --replace http://s/two || goto no\n:no\necho no",
			files: map[string]string{}, want: []string{"fetch http://s/two", "echo no"}, end: endExit,
		},
		{name: "sanboot of a drive is the disk", script: "sanboot --no-describe --drive 0x80 || exit", end: endDisk},
		{name: "reboot", script: "echo bye\nreboot", want: []string{"echo bye"}, end: endReboot},
		{name: "exit 1 goes back to the firmware too", script: "exit 1", end: endExit},
		{name: "exit 1 of a script that replaced another", script: "chain --replace http://s/two || echo no\necho no", files: map[string]string{"http://s/two": "#!ipxe\nexit 1"}, want: []string{"fetch http://s/two"}, end: endExit},
		{name: "a script may replace itself for ever while it sleeps", script: "chain --replace http://s/two", files: map[string]string{"http://s/two": "#!ipxe\ninc n\nsleep 1\niseq ${n} 40 && exit ||\nchain --replace http://s/two"}, end: endExit},
		{name: "poweroff is not in Debian's iPXE", script: "poweroff", end: endExit, fails: "poweroff: command not found"},
		{name: "the end of the file is an exit", script: "echo a", want: []string{"echo a"}, end: endExit},
		{name: "goto a missing label fails", script: "goto nowhere", end: endExit, fails: "no label :nowhere"},
		{name: "a value with blanks and bars stays one word", script: "iseq ${asset} x || echo [${asset}]", want: []string{"echo [a || b # c]"}, end: endExit},
		{name: "a skipped command leaves the result, so a trailing || catches it", script: "iseq a b && goto x ||\necho on\nexit\n:x\necho no", want: []string{"echo on"}, end: endExit},
		{name: "a success skips || and runs &&", script: "echo a || echo b && echo c", want: []string{"echo a", "echo c"}, end: endExit},
		{
			name: "ifconf -c dhcp does not wait for routers, dhcp does", script: "isset ${none} || ifconf -c dhcp ||\ndhcp",
			want: []string{"address, with router false", "address, with router true"}, end: endExit,
		},
		{name: "goto a missing label can be caught", script: "goto nowhere || echo stay", want: []string{"echo stay"}, end: endExit},
		{name: "a label may be indented and carry a command", script: "goto x\necho no\n  :x echo yes", want: []string{"echo yes"}, end: endExit},
		{name: "exit cannot be caught in its own script", script: "exit 1 || echo no", end: endExit},
		{
			name: "the failure of a chained script can be caught", script: "chain http://s/two || echo caught", files: map[string]string{"http://s/two": "#!ipxe\nexit 3\n"},
			want: []string{"fetch http://s/two", "echo caught"}, end: endExit,
		},
		{name: "a line may continue on the next", script: "echo one \\\n two", want: []string{"echo one two"}, end: endExit},
		{name: "comments and labels are skipped", script: "# note\n:label\necho a # not this", want: []string{"echo a"}, end: endExit},
		{name: "a missing shebang is no script", script: "chain http://s/two", files: map[string]string{"http://s/two": ""}, want: []string{"fetch http://s/two"}, end: endExit, fails: "exec format"},
		{name: "a script that never ends is stopped", script: ":a\ngoto a", end: endExit, fails: "still runs"},
		{
			name: "a script that chains to itself is stopped", script: "chain http://s/self", files: map[string]string{"http://s/self": "#!ipxe\nchain http://s/self"},
			want: nil, end: endExit, fails: "deep",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := &tape{files: c.files}
			in := &interpreter{verbs: v, settings: testSettings()}
			e, err := in.run(context.Background(), []byte("#!ipxe\n"+c.script+"\n"))
			if e.how != c.end || e.args != c.args {
				t.Errorf("ended with %s, arguments %q; want %s, %q", e.how, e.args, c.end, c.args)
			}
			switch {
			case c.fails == "" && err != nil:
				t.Errorf("failed: %v", err)
			case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
				t.Errorf("error %v, want one with %q", err, c.fails)
			}
			if c.want != nil {
				if diff := cmp.Diff(c.want, v.lines); diff != "" {
					t.Errorf("what the machine did (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestExpansion(t *testing.T) {
	s := testSettings()
	s["serial"] = "a b&c=d/é"
	s["name"], s["loop"] = "serial", "x${loop}"
	for _, c := range []struct{ in, want string }{
		{"${mac}", "52:54:00:aa:00:01"},
		{"${mac:hexhyp}", "52-54-00-aa-00-01"},
		{"${net0/mac:hexhyp}", "52-54-00-aa-00-01"},
		{"${mac:hexraw}", "525400aa0001"},
		{"${mac:uristring}", "52%3A54%3A00%3Aaa%3A00%3A01"},
		{"${uuid}", "4c4c4544-0042-3510-8054-b7c04f333232"},
		{"s=${serial:uristring}&u=${uuid:uristring}", "s=a%20b%26c%3Dd%2F%C3%A9&u=4c4c4544-0042-3510-8054-b7c04f333232"},
		{"${nothing:uristring}|", "|"},
		{"${${name}:uristring}", "a%20b%26c%3Dd%2F%C3%A9"},
		{"a } b ${ip} {", "a } b 10.0.0.9 {"},
		{"${unclosed", "${unclosed"},
		{"${buildarch} ${platform}", "x86_64 efi"},
	} {
		got, err := s.expand(c.in)
		if err != nil || got != c.want {
			t.Errorf("expand(%q) = %q, %v; want %q", c.in, got, err, c.want)
		}
	}
	if _, err := s.expand("${loop}"); err == nil {
		t.Error("a variable that contains itself was expanded to the end")
	}
}

func TestReportURL(t *testing.T) {
	got, err := reportURL("ro quiet slipway.report=http://10.0.0.1/boot/abc/report initrd=x")
	if want := "http://10.0.0.1/boot/abc/report?detail=synthetic+system+is+up&step=up"; err != nil || got != want {
		t.Errorf("reportURL = %q, %v; want %q", got, err, want)
	}
	if _, err := reportURL("ro quiet"); err == nil {
		t.Error("no error without slipway.report=")
	}
}

func FuzzScript(f *testing.F) {
	f.Add("#!ipxe\nset a b\n:x\niseq ${a} b && chain http://s/two || goto x\n")
	f.Add("#!ipxe\nkernel http://s/k ${mac:hexhyp} ||\nimgargs k x\nimgfree k\nboot\n")
	f.Add("#!ipxe\nset x ${${${y}}}\nsleep 1\ninc x\nsanboot --drive 0x80\n")
	f.Fuzz(func(t *testing.T, body string) {
		v := &tape{files: map[string]string{"http://s/two": "#!ipxe\necho two\n", "http://s/k": "K"}, limit: 500}
		in := &interpreter{verbs: v, settings: testSettings()}
		_, _ = in.run(context.Background(), []byte(body))
	})
}
