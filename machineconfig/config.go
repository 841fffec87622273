// Package machineconfig is the neutral model of what a machine should become. Layers merge into a Config, bootstrappers add
// to it, and provisioners write it in a format. No field names a tool. The package never writes a format itself. It never sees the
// value of a secret: a Config has references to secrets, and late.Inject replaces them when a document is delivered.
//
// Start reading at Config, then the two seams in seams.go. Package render does these steps for one host:
//
//  1. Package layer parses layers and merges them.
//  2. Fill and FillAddresses add what the inventory knows.
//  3. Package template expands templates.
//  4. Package validation checks the result.
//  5. Check compares it with what a format can express.
package machineconfig

import "strings"

// Config is what should be true of one machine's OS on its first boot. Its keys in YAML and JSON are the same.
type Config struct {
	Host    HostIdentity `yaml:"host,omitempty" json:"host,omitzero"`
	Boot    Boot         `yaml:"boot,omitempty" json:"boot,omitzero"`
	Network Network      `yaml:"network,omitempty" json:"network,omitzero"`
	Storage Storage      `yaml:"storage,omitempty" json:"storage,omitzero"`
	Users   []User       `yaml:"users,omitempty" json:"users,omitempty"`
	Groups  []Group      `yaml:"groups,omitempty" json:"groups,omitempty"`
	// DefaultUser is the account that the image brings; nil leaves it as the format has it.
	DefaultUser *DefaultUser `yaml:"defaultUser,omitempty" json:"defaultUser,omitempty"`
	SSHD        SSHD         `yaml:"sshd,omitempty" json:"sshd,omitzero"`
	Firewall    Firewall     `yaml:"firewall,omitempty" json:"firewall,omitzero"`
	SELinux     SELinux      `yaml:"selinux,omitempty" json:"selinux,omitempty"`
	Files       []File       `yaml:"files,omitempty" json:"files,omitempty"`
	Dirs        []Directory  `yaml:"directories,omitempty" json:"directories,omitempty"`
	Links       []Link       `yaml:"links,omitempty" json:"links,omitempty"`
	Units       []Unit       `yaml:"units,omitempty" json:"units,omitempty"`
	Kernel      Kernel       `yaml:"kernel,omitempty" json:"kernel,omitzero"`
	Time        Time         `yaml:"time,omitempty" json:"time,omitzero"`
	Packages    Packages     `yaml:"packages,omitempty" json:"packages,omitzero"`
	Extensions  []Extension  `yaml:"extensions,omitempty" json:"extensions,omitempty"`
	Trust       Trust        `yaml:"trust,omitempty" json:"trust,omitzero"`
	Commands    []Command    `yaml:"commands,omitempty" json:"commands,omitempty"`
	Scripts     []Script     `yaml:"scripts,omitempty" json:"scripts,omitempty"`
	// Bootstrap asks a bootstrapper to make the machine part of something; nil asks none.
	Bootstrap *BootstrapSpec `yaml:"bootstrap,omitempty" json:"bootstrap,omitempty"`
	PhoneHome PhoneHome      `yaml:"phoneHome,omitempty" json:"phoneHome,omitzero"`

	// Activation is what the bootstrapper emitted; layers cannot set it.
	Activation *Activation `yaml:"-" json:"activation,omitempty"`
	// Document is the profile's own document in a tool's words, already expanded; layers cannot set it.
	Document *Passthrough `yaml:"-" json:"document,omitempty"`
	// Provenance says which layer set each value: a JSON pointer such as /network/interfaces/eno1/mtu (list items by
	// their key) to "profile web:12", a layer and its line.
	Provenance map[string]string `yaml:"-" json:"-"`
}

// HostIdentity is who the machine is. InstanceID changes when a first boot should happen again.
type HostIdentity struct {
	InstanceID string `yaml:"-" json:"instanceID,omitempty"`
	Hostname   string `yaml:"hostname,omitempty" json:"hostname,omitempty"` // short name; the inventory's when empty
	Domain     string `yaml:"domain,omitempty" json:"domain,omitempty"`
	MachineID  string `yaml:"machineID,omitempty" json:"machineID,omitempty"` // 32 hex digits for /etc/machine-id
	Locale     string `yaml:"locale,omitempty" json:"locale,omitempty"`
	Keymap     string `yaml:"keymap,omitempty" json:"keymap,omitempty"`
	Timezone   string `yaml:"timezone,omitempty" json:"timezone,omitempty"`
	// MetaData are more names of ds.meta_data for templates of cloud-init (jinja); the values are templates themselves.
	MetaData map[string]string `yaml:"metaData,omitempty" json:"metaData,omitempty"`
}

// FQDN is the host name with its domain, or the bare host name.
func (h HostIdentity) FQDN() string {
	if h.Domain == "" {
		return h.Hostname
	}
	return h.Hostname + "." + h.Domain
}

// Boot says where an installer writes and what follows.
type Boot struct {
	RootDevice DeviceSelector `yaml:"rootDevice,omitempty" json:"rootDevice,omitzero"`
	PowerAfter PowerAfter     `yaml:"powerAfter,omitempty" json:"powerAfter,omitempty"`
}

// PowerAfter is what an installer does when it is done; reboot when empty.
type PowerAfter string

// What an installer does when it is done.
const (
	Reboot   PowerAfter = "reboot"
	PowerOff PowerAfter = "poweroff"
)

// Content is what a file holds: exactly one of its fields is set. Text may be a template and may hold markers of late
// values; Base64 is taken as it is.
type Content struct {
	Text   string  `yaml:"text,omitempty" json:"text,omitempty"`
	Base64 string  `yaml:"base64,omitempty" json:"base64,omitempty"`
	Secret string  `yaml:"secret,omitempty" json:"secret,omitempty"` // secret://name
	Remote *Remote `yaml:"remote,omitempty" json:"remote,omitempty"`
}

// Remote is content that the machine fetches itself.
type Remote struct {
	URL    string `yaml:"url" json:"url"`
	SHA256 string `yaml:"sha256,omitempty" json:"sha256,omitempty"` // 64 hex digits; needed unless the URL is https
}

// File is a file with its content.
type File struct {
	Path    string `yaml:"path" json:"path"`
	Mode    Mode   `yaml:"mode,omitempty" json:"mode,omitempty"`   // 0644 when 0
	Owner   string `yaml:"owner,omitempty" json:"owner,omitempty"` // root when empty
	Group   string `yaml:"group,omitempty" json:"group,omitempty"` // root when empty
	Content `yaml:",inline"`
	Append  bool `yaml:"append,omitempty" json:"append,omitempty"` // adds to what is there instead of replacing it
}

// IsVolatile reports whether the path is emptied at every boot, so that a file there has to be put back by tmpfiles.d.
func (f File) IsVolatile() bool { return isVolatile(f.Path) }

// Directory is a directory.
type Directory struct {
	Path  string `yaml:"path" json:"path"`
	Mode  Mode   `yaml:"mode,omitempty" json:"mode,omitempty"` // 0755 when 0
	Owner string `yaml:"owner,omitempty" json:"owner,omitempty"`
	Group string `yaml:"group,omitempty" json:"group,omitempty"`
}

// Link is a symbolic link, or a hard one.
type Link struct {
	Path   string `yaml:"path" json:"path"`
	Target string `yaml:"target" json:"target"`
	Hard   bool   `yaml:"hard,omitempty" json:"hard,omitempty"`
}

// User is an account. PasswordHash is a crypt(3) hash, or secret://name of one.
type User struct {
	Name         string   `yaml:"name" json:"name"`
	Gecos        string   `yaml:"gecos,omitempty" json:"gecos,omitempty"`
	Home         string   `yaml:"home,omitempty" json:"home,omitempty"`
	Shell        string   `yaml:"shell,omitempty" json:"shell,omitempty"`
	PrimaryGroup string   `yaml:"primaryGroup,omitempty" json:"primaryGroup,omitempty"`
	UID          *int     `yaml:"uid,omitempty" json:"uid,omitempty"`
	Groups       []string `yaml:"groups,omitempty" json:"groups,omitempty"`
	PasswordHash string   `yaml:"passwordHash,omitempty" json:"passwordHash,omitempty"`
	// LockPassword forbids to log in with a password; true when nil and no hash is given.
	LockPassword *bool    `yaml:"lockPassword,omitempty" json:"lockPassword,omitempty"`
	Sudo         string   `yaml:"sudo,omitempty" json:"sudo,omitempty"` // a sudoers rule without the name: ALL=(ALL) NOPASSWD:ALL
	SSHKeys      []string `yaml:"sshKeys,omitempty" json:"sshKeys,omitempty"`
	System       bool     `yaml:"system,omitempty" json:"system,omitempty"`
}

// Group is a group of users.
type Group struct {
	Name   string `yaml:"name" json:"name"`
	GID    *int   `yaml:"gid,omitempty" json:"gid,omitempty"`
	System bool   `yaml:"system,omitempty" json:"system,omitempty"`
}

// Unit is a systemd unit. With empty Contents it stands for one that the OS has.
type Unit struct {
	Name     string   `yaml:"name" json:"name"`
	Contents string   `yaml:"contents,omitempty" json:"contents,omitempty"` // may be a template
	Enabled  *bool    `yaml:"enabled,omitempty" json:"enabled,omitempty"`
	Masked   bool     `yaml:"masked,omitempty" json:"masked,omitempty"`
	DropIns  []DropIn `yaml:"dropIns,omitempty" json:"dropIns,omitempty"`
}

// DropIn is a piece added to a unit; its name ends in .conf.
type DropIn struct {
	Name     string `yaml:"name" json:"name"`
	Contents string `yaml:"contents" json:"contents"`
}

// Kernel is what the installed or running kernel gets, besides what the image needs to boot.
type Kernel struct {
	Args       []string          `yaml:"args,omitempty" json:"args,omitempty"`
	RemoveArgs []string          `yaml:"removeArgs,omitempty" json:"removeArgs,omitempty"`
	Modules    []string          `yaml:"modules,omitempty" json:"modules,omitempty"`
	Sysctl     map[string]string `yaml:"sysctl,omitempty" json:"sysctl,omitempty"`
}

// Time says where the clock comes from.
type Time struct {
	NTPServers []string `yaml:"ntpServers,omitempty" json:"ntpServers,omitempty"`
	Enabled    *bool    `yaml:"enabled,omitempty" json:"enabled,omitempty"` // true when nil and servers are given
}

// Extension adds binaries to an OS that has no packages.
type Extension struct {
	Name   string `yaml:"name" json:"name"`
	Remote `yaml:",inline"`
	Format ExtensionFormat `yaml:"format,omitempty" json:"format,omitempty"` // sysext when empty
}

// ExtensionFormat says how an extension is laid over the OS.
type ExtensionFormat string

// The formats of extensions.
const (
	Sysext    ExtensionFormat = "sysext"     // systemd-sysext raw image
	RPMOSTree ExtensionFormat = "rpm-ostree" // layered packages; URL is the package name
	Bootc     ExtensionFormat = "bootc"      // the whole OS as a container image; URL is its reference
)

// Trust is whom the machine trusts.
type Trust struct {
	CAs []string `yaml:"cas,omitempty" json:"cas,omitempty"` // PEM certificates
}

// PhoneHome makes the machine report to Slipway; on when Enabled is nil.
type PhoneHome struct {
	Enabled *bool `yaml:"enabled,omitempty" json:"enabled,omitempty"`
	// URL is where it reports, with a marker for what only the boot session knows; set by the renderer, not by layers. The marker becomes
	// several URLs with blanks between them, if there are several instances.
	URL string `yaml:"-" json:"url,omitempty"`
}

// BootstrapSpec asks a bootstrapper for something.
type BootstrapSpec struct {
	Kind   string `yaml:"kind" json:"kind"`                         // kubeadm, k3s, microk8s, talos, capi-secret or none
	Target string `yaml:"target,omitempty" json:"target,omitempty"` // join target
	Role   Role   `yaml:"role,omitempty" json:"role,omitempty"`     // worker when empty
	// Version of what is installed, such as 1.35.0; the target's when empty.
	Version string `yaml:"version,omitempty" json:"version,omitempty"`

	NodeName    string            `yaml:"nodeName,omitempty" json:"nodeName,omitempty"` // the host name when empty
	Labels      map[string]string `yaml:"labels,omitempty" json:"labels,omitempty"`
	Taints      []Taint           `yaml:"taints,omitempty" json:"taints,omitempty"`
	KubeletArgs map[string]string `yaml:"kubeletArgs,omitempty" json:"kubeletArgs,omitempty"`
	NodeIP      string            `yaml:"nodeIP,omitempty" json:"nodeIP,omitempty"`
	ProviderID  string            `yaml:"providerID,omitempty" json:"providerID,omitempty"`
	CRISocket   string            `yaml:"criSocket,omitempty" json:"criSocket,omitempty"`
	// Install says how its requirements are met; "" chooses by the OS, none means the image has them.
	Install string `yaml:"install,omitempty" json:"install,omitempty"`
	// Secret names the secret that holds a finished bootstrap document: a Cluster API bootstrap secret's value for
	// capi-secret, a Talos machine configuration for talos, a join token for k3s and microk8s.
	Secret string `yaml:"secret,omitempty" json:"secret,omitempty"`
	// SecretFormat is the format key of a Cluster API bootstrap secret: cloud-config (when empty) or ignition.
	SecretFormat string `yaml:"secretFormat,omitempty" json:"secretFormat,omitempty"`
	// Options are a bootstrapper's own settings, by the names in its documentation.
	// A list is kept as its items, each with a line end behind it: see Options.List.
	Options Options `yaml:"options,omitempty" json:"options,omitempty"`
}

// Options are settings of a bootstrapper.
type Options map[string]string

// OptionList splits the value of an option into its items: the lines of a list, or else the parts between commas.
func OptionList(value string) []string {
	if strings.HasSuffix(value, "\n") {
		return strings.Split(strings.TrimSuffix(value, "\n"), "\n")
	}
	items := strings.Split(value, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items
}

// Role is what a machine is in a cluster.
type Role string

// The roles.
const (
	Worker       Role = "worker"
	ControlPlane Role = "control-plane"
	Init         Role = "init" // the first control plane, which makes the cluster
)

// Taint keeps pods away from a node.
type Taint struct {
	Key    string `yaml:"key" json:"key"`
	Value  string `yaml:"value,omitempty" json:"value,omitempty"`
	Effect string `yaml:"effect" json:"effect"` // NoSchedule, PreferNoSchedule or NoExecute
}

// PathKey names the taint in paths.
func (t Taint) PathKey() string { return t.Key + ":" + t.Effect }

// Activation is what a bootstrapper emits: files and one command, opaque to provisioners.
type Activation struct {
	Kind  string
	Files []File
	Exec  []string // argv of the idempotent command
	// ReadyPath exists once the command has succeeded: it is not run again then.
	ReadyPath string
	// Sentinel is written when everything has succeeded, such as /run/cluster-api/bootstrap-success.complete.
	Sentinel string
	After    []string // units that the command waits for
	// Cleanup are paths that are removed when the command has succeeded, because they hold secrets.
	Cleanup []string
	// Native is a whole document that replaces everything else, for systems whose configuration is one.
	Native *Passthrough
	// Prelude is a document that cloud-init runs before ours, unchanged: a Cluster API bootstrap secret.
	Prelude *Passthrough
}

// Passthrough is a document in a tool's own words. Data may hold markers of late values.
type Passthrough struct {
	Format string // an inventory.DocumentFormat
	Data   []byte
	Jinja  bool // cloud-init renders it as a jinja template first
}
