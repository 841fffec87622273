package cloudinit

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

func TestCloudInitReadsTheConfigurationThatWasMeant(t *testing.T) {
	each(t, func(t *testing.T, r reader, cases []*seedCase) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				doc := c.document(t, "user-data")
				if len(doc) == 0 || doc[0] != '#' {
					return // multipart: see below
				}
				var want map[string]any
				if err := yaml.Unmarshal(doc, &want); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(c.result.Config)); diff != "" {
					t.Errorf("Python reads something else than Go: %s", diff)
				}
			})
		}
	})
}

func TestCloudInitWritesTheFiles(t *testing.T) {
	each(t, func(t *testing.T, r reader, cases []*seedCase) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { checkFiles(t, c) })
		}
	})
}

func checkFiles(t *testing.T, c *seedCase) {
	files := append([]machineconfig.File{}, c.config.Files...)
	for _, u := range c.config.Units {
		if u.Contents != "" && !u.Masked {
			files = append(files, machineconfig.File{Path: "/etc/systemd/system/" + u.Name, Content: machineconfig.Content{Text: u.Contents}})
		}
		for _, d := range u.DropIns {
			files = append(files, machineconfig.File{Path: "/etc/systemd/system/" + u.Name + ".d/" + d.Name, Content: machineconfig.Content{Text: d.Contents}})
		}
	}
	if a := c.config.Activation; a != nil {
		files = append(files, a.Files...)
	}
	for _, f := range files {
		if f.Remote != nil {
			if !strings.Contains(c.result.Runcmd, f.Remote.URL) {
				t.Errorf("nothing fetches %s", f.Remote.URL)
			}
			continue
		}
		want := expand(f.Text)
		switch {
		case f.Secret != "":
			v, _ := value(f.Secret)
			want = string(v)
		case f.Base64 != "":
			b, err := base64.StdEncoding.DecodeString(f.Base64)
			if err != nil {
				t.Fatal(err)
			}
			want = string(b)
		}
		got, err := os.ReadFile(c.root + f.Path)
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s: %s", f.Path, diff)
		}
		info, err := os.Stat(c.root + f.Path)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := mode(info.Mode()), uint32(f.Mode.Or(0o644)); got != want {
			t.Errorf("%s has mode %o, want %o", f.Path, got, want)
		}
		owner := "root:root"
		if f.Owner != "" || f.Group != "" {
			owner = word(f.Owner) + ":" + word(f.Group)
			if !slices.Contains(c.result.Apply.Late, f.Path) {
				t.Errorf("%s is written before its owner exists", f.Path)
			}
		}
		if got := c.result.Apply.Owners[f.Path]; got != owner {
			t.Errorf("%s belongs to %s, want %s", f.Path, got, owner)
		}
	}
}

func word(s string) string {
	if s == "" {
		return "root"
	}
	return s
}

func mode(m fs.FileMode) uint32 {
	out := uint32(m.Perm())
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if m&flag != 0 {
			out |= bit
		}
	}
	return out
}

func TestCloudInitMakesTheAccounts(t *testing.T) {
	each(t, func(t *testing.T, r reader, cases []*seedCase) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				got := c.result.Users.Users
				// Whoever names users says who has an account; silence, and a document about the default user, keep the image's; a layer may remove it.
				_, isMade := got["image-default"]
				d := c.config.DefaultUser
				isKept := len(c.config.Users) == 0 && (d == nil || d.State != machineconfig.RemoveUser)
				if want := isKept || c.name == "own-default-user"; isMade != want && c.config.Activation == nil {
					t.Errorf("the image's default user is made: %t, want %t", isMade, want)
				}
				for _, u := range c.config.Users {
					g, ok := got[u.Name]
					if !ok {
						t.Errorf("%s is not made: %v", u.Name, got)
						continue
					}
					if u.UID != nil && fmt.Sprint(g["uid"]) != fmt.Sprint(*u.UID) {
						t.Errorf("%s has uid %v, want %d", u.Name, g["uid"], *u.UID)
					}
					if len(u.Groups) > 0 && fmt.Sprint(g["groups"]) != fmt.Sprint(u.Groups) {
						t.Errorf("%s is in %v, want %s", u.Name, g["groups"], u.Groups)
					}
					if want := fmt.Sprint(u.SSHKeys); len(u.SSHKeys) > 0 && fmt.Sprint(g["ssh_authorized_keys"]) != want {
						t.Errorf("%s has keys %v, want %s", u.Name, g["ssh_authorized_keys"], want)
					}
					if hash := u.PasswordHash; hash != "" {
						if late.IsSecret(hash) {
							b, _ := value(hash)
							hash = string(b)
						}
						if g["hashed_passwd"] != expand(hash) {
							t.Errorf("%s has password %v, want %s", u.Name, g["hashed_passwd"], hash)
						}
					}
					if u.Sudo != "" && fmt.Sprint(g["sudo"]) != u.Sudo {
						t.Errorf("%s may %v, want %s", u.Name, g["sudo"], u.Sudo)
					}
					for key, want := range map[string]string{"shell": u.Shell, "homedir": u.Home, "primary_group": u.PrimaryGroup, "gecos": u.Gecos} {
						if want != "" && g[key] != want {
							t.Errorf("%s has %s %v, want %s", u.Name, key, g[key], want)
						}
					}
				}
			})
		}
	})
}

func TestScriptsAreCleanShell(t *testing.T) {
	each(t, func(t *testing.T, r reader, cases []*seedCase) {
		dir := t.TempDir()
		var paths []string
		for _, c := range cases {
			for name, text := range map[string]string{"runcmd": c.result.Runcmd, "bootcmd": c.result.Bootcmd} {
				path := write(t, dir, c.name+"."+name, []byte(text))
				paths = append(paths, path)
				for _, shell := range []string{"bash", "dash"} {
					if out, err := exec.CommandContext(t.Context(), shell, "-n", path).CombinedOutput(); err != nil {
						t.Errorf("%s -n: %s", shell, out)
					}
				}
			}
		}
		// Inline scripts stand in single quotes (2016), and texts may look like mistakes.
		args := append([]string{"-s", "sh", "-S", "warning", "-e", "SC2016,SC2288,SC2289"}, paths...)
		if out, err := exec.CommandContext(t.Context(), "shellcheck", args...).CombinedOutput(); err != nil {
			t.Errorf("shellcheck: %s", out)
		}
	})
	scripts, err := filepath.Glob("../../../cloudinit/scripts/*.sh")
	if err != nil || len(scripts) < 4 {
		t.Fatalf("scripts: %v %v", scripts, err)
	}
	for _, s := range scripts {
		if out, err := exec.CommandContext(t.Context(), "shellcheck", "-s", "sh", s).CombinedOutput(); err != nil {
			t.Errorf("shellcheck: %s", out)
		}
	}
}
