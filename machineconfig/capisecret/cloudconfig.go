package capisecret

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// cloudConfig is the part of cloud-config that bootstrap providers of Cluster API write. An unknown key is an error:
// what is not understood would be lost.
type cloudConfig struct {
	WriteFiles []writeFile          `yaml:"write_files"`
	BootCmd    []command            `yaml:"bootcmd"`
	RunCmd     []command            `yaml:"runcmd"`
	Users      []user               `yaml:"users"`
	NTP        ntp                  `yaml:"ntp"`
	DiskSetup  map[string]diskSetup `yaml:"disk_setup"`
	FSSetup    []fsSetup            `yaml:"fs_setup"`
	Mounts     [][]string           `yaml:"mounts"`
}

type writeFile struct {
	Path        string `yaml:"path"`
	Content     string `yaml:"content"`
	Encoding    string `yaml:"encoding"`
	Owner       string `yaml:"owner"`
	Permissions string `yaml:"permissions"`
	Append      bool   `yaml:"append"`
	Defer       bool   `yaml:"defer"` // nothing to do: users exist before files here
}

type ntp struct {
	Enabled *bool    `yaml:"enabled"`
	Servers []string `yaml:"servers"`
}

type diskSetup struct {
	TableType string    `yaml:"table_type"`
	Layout    yaml.Node `yaml:"layout"`
	Overwrite bool      `yaml:"overwrite"`
}

type fsSetup struct {
	Label      string   `yaml:"label"`
	Filesystem string   `yaml:"filesystem"`
	Device     string   `yaml:"device"`
	Partition  string   `yaml:"partition"`
	Overwrite  bool     `yaml:"overwrite"`
	ReplaceFS  string   `yaml:"replace_fs"`
	ExtraOpts  []string `yaml:"extra_opts"`
}

// user is an account, or the word default for the image's own.
type user struct {
	Name          string      `yaml:"name"`
	Gecos         string      `yaml:"gecos"`
	HomeDir       string      `yaml:"homedir"`
	PrimaryGroup  string      `yaml:"primary_group"`
	Groups        stringOrAll `yaml:"groups"`
	Inactive      string      `yaml:"inactive"`
	Passwd        string      `yaml:"passwd"`
	HashedPasswd  string      `yaml:"hashed_passwd"`
	LockPasswd    *bool       `yaml:"lock_passwd"`
	Shell         string      `yaml:"shell"`
	Sudo          stringOrAll `yaml:"sudo"`
	SSHKeys       []string    `yaml:"ssh_authorized_keys"`
	SystemAccount bool        `yaml:"system"`
}

// UnmarshalYAML reads a user, or only its name. In this form the decoder stays strict about keys.
func (u *user) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&u.Name) == nil {
		return nil
	}
	type plain user
	return unmarshal((*plain)(u))
}

// stringOrAll is a list, or one text; false is neither.
type stringOrAll []string

// UnmarshalYAML reads both forms.
func (s *stringOrAll) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return n.Decode((*[]string)(s))
	}
	if n.ShortTag() != "!!bool" {
		*s = []string{n.Value}
	}
	return nil
}

// command is a line of shell, or words.
type command struct {
	line  string
	words []string
}

// UnmarshalYAML reads both forms.
func (c *command) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return n.Decode(&c.words)
	}
	c.line = n.Value
	return nil
}

// shell returns the command as a line of a shell script, as cloud-init makes one: a text as it is, words quoted.
func (c command) shell() string {
	if c.words == nil {
		return c.line
	}
	quoted := make([]string, len(c.words))
	for i, w := range c.words {
		quoted[i] = late.ShellWord(w)
	}
	return strings.Join(quoted, " ")
}

// parseCloudConfig reads a cloud-config into the neutral model: what it writes and runs is an activation. Its success
// is what the secret itself says it is, so the sentinel is looked for and not written.
func parseCloudConfig(text []byte) (*machineconfig.Config, error) {
	var cc cloudConfig
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&cc); err != nil && !errors.Is(err, io.EOF) {
		return nil, yamlError(err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, refuse("write one document", "has more than one document of YAML")
	}
	c := &machineconfig.Config{Activation: &machineconfig.Activation{
		Kind: Kind, After: []string{"network-online.target", "containerd.service"},
	}}
	for _, part := range []func(*cloudConfig, *machineconfig.Config) error{files, commands, users, storage} {
		if err := part(&cc, c); err != nil {
			return nil, err
		}
	}
	c.Time = machineconfig.Time{NTPServers: cc.NTP.Servers, Enabled: cc.NTP.Enabled}
	return c, nil
}

// script is where the commands of the secret are run from.
const script = "/etc/slipway/capi-bootstrap.sh"

// commands makes one script of the runcmd, as cloud-init does: each command runs, whether the one before it succeeded
// or not. Whether the bootstrap did is told by the sentinel that the secret writes.
func commands(cc *cloudConfig, c *machineconfig.Config) error {
	for i, cmd := range cc.BootCmd {
		c.Commands = append(c.Commands, machineconfig.Command{Name: "bootcmd-" + strconv.Itoa(i), Phase: machineconfig.EveryBoot, Shell: cmd.shell()})
	}
	if len(cc.RunCmd) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("#!/bin/bash\n")
	for _, cmd := range cc.RunCmd {
		b.WriteString(cmd.shell() + "\n")
	}
	a := c.Activation
	a.Files = append(a.Files, machineconfig.File{Path: script, Mode: 0o700, Content: content([]byte(b.String()))})
	a.Exec = []string{"/bin/bash", "-c", `/bin/bash "$0"; test -e "$1" || { echo "the bootstrap has not written $1" >&2; exit 1; }`, script, sentinel}
	a.Cleanup = append(a.Cleanup, script)
	return nil
}

func content(data []byte) machineconfig.Content {
	return machineconfig.Content{Base64: base64.StdEncoding.EncodeToString(data)}
}

func users(cc *cloudConfig, c *machineconfig.Config) error {
	for _, u := range cc.Users {
		shown := inventory.Clean(u.Name, 40)
		switch {
		case u.Name == "default":
			continue // the image's own user
		case u.Name == "":
			return refuse("give each user a name", "has a user without a name")
		case u.Inactive != "" && u.Inactive != "false":
			return refuse("leave inactive out", "makes user %s inactive, which Ignition cannot say", shown)
		case strings.ContainsAny(strings.Join(u.Sudo, ""), "\n\r"):
			return refuse("write each rule on a line of its own list item", "has a rule for sudo of user %s with a line break in it", shown)
		}
		var groups []string
		for g := range strings.SplitSeq(strings.Join(u.Groups, ","), ",") {
			if g = strings.TrimSpace(g); g != "" {
				groups = append(groups, g)
			}
		}
		hash := cmp.Or(u.HashedPasswd, u.Passwd)
		locked := u.LockPasswd
		if locked == nil { // cloud-init's own default, also with a hash
			yes := true
			locked = &yes
		}
		c.Users = append(c.Users, machineconfig.User{
			Name: u.Name, Gecos: u.Gecos, Home: u.HomeDir, Shell: u.Shell, PrimaryGroup: u.PrimaryGroup, Groups: groups,
			PasswordHash: hash, LockPassword: locked, Sudo: strings.Join(u.Sudo, " : "), SSHKeys: u.SSHKeys, System: u.SystemAccount,
		})
	}
	return nil
}
