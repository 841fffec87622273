package cloudinit

import (
	"cmp"
	_ "embed"
	"strconv"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/plain"
)

// runDir holds what the first boot needs and nothing later does.
const runDir = "/run/slipway"

//go:embed scripts/first-boot.sh
var firstBootScript string

// render collects what the parts of a user-data document say.
type render struct {
	t machineconfig.Target
	c *machineconfig.Config
	r machineconfig.Report

	keys    object // finished top-level keys, in order
	bootcmd list   // at every boot, before anything else
	files   list   // write_files
	users   list
	groups  list
	steps   list // runcmd of the first boot, up to the activation
	after   list // runcmd after the activation
	install []string

	documentUsers      *yaml.Node // what the profile's own document says under users, nil for nothing
	documentHasDefault bool       // it speaks of the image's default user
}

// UserData returns the user-data of a NoCloud seed. This is one cloud-config, or a multipart message when there is a
// document of its own or a bootstrap secret.
func UserData(t machineconfig.Target, c *machineconfig.Config) ([]byte, machineconfig.Report) {
	c, r := plain.Say(t, c, plainly...)
	w := &render{t: t, c: c, r: r}
	w.host()
	w.accounts()
	w.writeFiles()
	w.systemd()
	w.kernel()
	w.software()
	w.storage()
	w.commands()
	document := w.document()
	out := w.assemble(document)
	if holdsSecrets(out) {
		w.scrub()
		out = w.assemble(document)
	}
	if len(out) > maxUserData {
		w.r.Errorf("", "too-large", "makes %d bytes of user-data; at most %d are allowed", len(out), maxUserData).
			Hint = "let the machine fetch large files: give them as remote with a checksum"
	}
	if w.r.HasErrors() {
		return nil, w.r
	}
	return out, w.r
}

// plainly are the rows of the capability table that cloud-init has no words for.
var plainly = []string{
	"/packages/proxy", "/packages/pins", "/packages/groups", "/packages/remove", "/packages/snaps", "/storage/mounts", "/network/wireguards",
	"/sshd", "/selinux", "/firewall",
}

// maxUserData is the most that a machine is given to parse.
const maxUserData = 16 << 20

func (w *render) set(key string, value any) { w.keys = w.keys.with(key, value) }

// file adds a file of ours.
func (w *render) file(path, mode, content string) {
	w.files = append(w.files, object{{"path", path}, {"permissions", quoted(mode)}, {"content", content}})
}

// step adds a step of the first boot. cloud-init quotes each argument for the shell.
func (w *render) step(name, verb string, args ...string) {
	w.steps = append(w.steps, stepArgv(name, verb, args...))
}

func stepArgv(name, verb string, args ...string) argv {
	return append(argv{"sh", runDir + "/first-boot.sh", name, verb}, args...)
}

func (w *render) host() {
	h := w.c.Host
	if h.Hostname != "" {
		w.set("hostname", h.Hostname)
		w.set("fqdn", h.FQDN())
		w.keys = append(w.keys, entry{"preserve_hostname", false}, entry{"prefer_fqdn_over_hostname", false})
		w.set("manage_etc_hosts", w.etcHosts())
	}
	w.set("locale", h.Locale)
	w.set("timezone", h.Timezone)
	if h.Keymap != "" {
		w.set("keyboard", object{{"layout", h.Keymap}})
	}
	if h.MachineID != "" {
		w.file("/etc/machine-id", "0444", h.MachineID+"\n")
	}
}

// etcHosts says how cloud-init cares for /etc/hosts: not at all when the configuration writes it.
func (w *render) etcHosts() any {
	for _, f := range w.c.Files {
		if f.Path == "/etc/hosts" {
			return false
		}
	}
	return "localhost"
}

func (w *render) accounts() {
	for _, g := range w.c.Groups {
		if g.GID == nil && !g.System {
			w.groups = append(w.groups, g.Name)
			continue
		}
		add := "getent group \"$1\" >/dev/null || groupadd"
		if g.System {
			add += " --system"
		}
		args := argv{"sh", "-c", add + " \"$1\"", "group", g.Name}
		if g.GID != nil {
			args = argv{"sh", "-c", add + " --gid \"$2\" \"$1\"", "group", g.Name, strconv.Itoa(*g.GID)}
		}
		w.bootcmd = append(w.bootcmd, args) // cloud-init's own groups have no number
	}
	w.defaultUser()
	if root := w.c.SSHD.PermitRootLogin; root != "" {
		w.keys = append(w.keys, entry{"disable_root", root == "no"})
	}
	for _, u := range w.c.Users {
		w.users = append(w.users, user(u))
		if u.Name == "root" && len(u.SSHKeys) > 0 && w.c.SSHD.PermitRootLogin == "" {
			w.keys = append(w.keys, entry{"disable_root", false})
		}
	}
}

// defaultUser says what becomes of the account that the image brings; withDefault names it among the users. A list of users
// without it leaves it out.
func (w *render) defaultUser() {
	d := w.c.DefaultUser
	switch {
	case d == nil:
		return
	case d.State == machineconfig.RemoveUser:
		if len(w.c.Users) == 0 {
			// The schema wants a user in a list of users: root is there, and stays as it is.
			w.keys = append(w.keys, entry{"users", list{object{{"name", "root"}, {"lock_passwd", false}}}})
		}
		return
	}
	o := object{}.with("gecos", d.Gecos).with("shell", d.Shell).with("groups", strs(d.Groups))
	hash := d.PasswordHash
	if late.IsSecret(hash) {
		hash = late.Marker(hash)
	}
	if hash != "" {
		o = append(o, entry{"hashed_passwd", quoted(hash)})
	}
	if d.LockPassword != nil {
		o = append(o, entry{"lock_passwd", *d.LockPassword})
	} else if hash != "" {
		o = append(o, entry{"lock_passwd", false})
	}
	o = o.with("sudo", d.Sudo).with("ssh_authorized_keys", strs(d.SSHKeys))
	if name := cmp.Or(d.Name, defaultUsers[w.t.OS]); d.Name != "" || len(o) > 0 {
		o = append(object{}.with("name", name), o...)
	}
	w.set("user", o)
}

// defaultUsers are the names of the users that images of an OS bring: the schema wants one wherever a user is changed.
var defaultUsers = map[string]string{
	"debian": "debian", "ubuntu": "ubuntu", "rhel": "cloud-user", "centos": "cloud-user", "almalinux": "almalinux", "alma": "almalinux",
	"rocky": "rocky", "oraclelinux": "cloud-user", "fedora": "fedora", "amazon": "ec2-user", "photon": "photon", "azurelinux": "azurelinux",
	"opensuse": "opensuse", "leap": "opensuse", "sles": "sles",
}

func user(u machineconfig.User) object {
	o := object{{"name", u.Name}}.with("gecos", u.Gecos).with("homedir", u.Home).with("shell", u.Shell).
		with("primary_group", u.PrimaryGroup)
	if u.UID != nil {
		o = append(o, entry{"uid", *u.UID})
	}
	o = o.with("groups", strs(u.Groups))
	if u.System {
		o = append(o, entry{"system", true})
	}
	hash := u.PasswordHash
	if late.IsSecret(hash) {
		hash = late.Marker(hash)
	}
	if hash != "" {
		o = append(o, entry{"hashed_passwd", quoted(hash)})
	}
	lock := hash == ""
	if u.LockPassword != nil {
		lock = *u.LockPassword
	}
	o = append(o, entry{"lock_passwd", lock})
	return o.with("sudo", u.Sudo).with("ssh_authorized_keys", strs(u.SSHKeys))
}
