package pxe

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

func snippetsOf(t *testing.T) []Snippet {
	t.Helper()
	s := inventory.Subnet{Name: "eno1", CIDR: netip.MustParsePrefix("10.0.0.0/24")}
	return Snippets(s, netip.MustParseAddr("10.0.0.1"), 8080, "")
}

func TestSnippetsAreAsWritten(t *testing.T) {
	for _, s := range snippetsOf(t) {
		path := filepath.Join("testdata", "snippet-"+s.Server+".golden")
		if *update {
			if err := os.WriteFile(path, []byte(s.Text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), s.Text); d != "" {
			t.Errorf("%s (-want +got); if that is meant, run with -update:\n%s", s.Server, d)
		}
	}
	one := Snippets(inventory.Subnet{}, netip.MustParseAddr("10.0.0.1"), 80, "kea")
	if len(one) != 1 || one[0].Server != "kea" || !strings.Contains(one[0].Text, `"http://10.0.0.1/boot/ask"`) {
		t.Errorf("kea alone is %+v", one)
	}
}

// TestSnippetsNameWhatWeServe holds the names in snippets to the table of loaders, and each to sending iPXE to a script:
// iPXE that is sent to a loader loads itself for ever.
func TestSnippetsNameWhatWeServe(t *testing.T) {
	file := regexp.MustCompile(`[\w-]+\.(efi|kpxe|ipxe)\b`)
	for _, s := range snippetsOf(t) {
		names := file.FindAllString(s.Text, -1)
		if len(names) < 6 || !strings.Contains(s.Text, "http://10.0.0.1:8080/boot/ask") || !strings.Contains(s.Text, "http://10.0.0.1:8080/boot/snponly.efi") {
			t.Errorf("%s sends too few to us: %v", s.Server, names)
		}
		for _, n := range names {
			if !IsLoader(n) {
				t.Errorf("%s names %s, which nobody serves", s.Server, n)
			}
		}
	}
}

// TestServersTakeTheirSnippets asks the programs themselves.
func TestServersTakeTheirSnippets(t *testing.T) {
	for _, s := range snippetsOf(t) {
		if s.Check == "" {
			continue
		}
		t.Run(s.Server, func(t *testing.T) {
			words := strings.Fields(s.Check)
			path := filepath.Join(t.TempDir(), "server.conf")
			words[len(words)-1] = path
			program, err := exec.LookPath(words[0])
			if err != nil {
				t.Skipf("%s is not installed", words[0])
			}
			check := func(text string) (string, error) {
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				out, err := exec.CommandContext(t.Context(), program, words[1:]...).CombinedOutput()
				return string(out), err
			}
			if out, err := check(s.Text); err != nil {
				t.Errorf("%s refuses it: %v\n%s", s.Server, err, out)
			}
			word := map[string]string{"dnsmasq": "dhcp-boot", "kea": "exists", "dhcpd": "filename"}[s.Server]
			if out, err := check(strings.Replace(s.Text, word, word+"s", 1)); err == nil {
				t.Errorf("%s takes nonsense, so that its check says nothing:\n%s", s.Server, out)
			}
		})
	}
}
