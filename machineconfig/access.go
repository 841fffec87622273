package machineconfig

// DefaultUser is the account that an image brings, such as ubuntu or core. Its fields besides State change it; an empty
// field stays as the image has it.
type DefaultUser struct {
	State        string   `yaml:"state,omitempty" json:"state,omitempty"` // keep (when empty) or remove
	Name         string   `yaml:"name,omitempty" json:"name,omitempty"`   // another name for it
	Gecos        string   `yaml:"gecos,omitempty" json:"gecos,omitempty"`
	Shell        string   `yaml:"shell,omitempty" json:"shell,omitempty"`
	Groups       []string `yaml:"groups,omitempty" json:"groups,omitempty"`
	PasswordHash string   `yaml:"passwordHash,omitempty" json:"passwordHash,omitempty"` // as of a User
	LockPassword *bool    `yaml:"lockPassword,omitempty" json:"lockPassword,omitempty"`
	Sudo         string   `yaml:"sudo,omitempty" json:"sudo,omitempty"`
	SSHKeys      []string `yaml:"sshKeys,omitempty" json:"sshKeys,omitempty"`
}

// The states of the image's default user.
const (
	KeepUser   = "keep"
	RemoveUser = "remove"
)

// SSHD are settings of the SSH server. Empty ones stay as the OS has them.
type SSHD struct {
	PasswordAuthentication *bool    `yaml:"passwordAuthentication,omitempty" json:"passwordAuthentication,omitempty"`
	PermitRootLogin        string   `yaml:"permitRootLogin,omitempty" json:"permitRootLogin,omitempty"` // as sshd_config(5) has it
	Ports                  []string `yaml:"ports,omitempty" json:"ports,omitempty"`
	AllowUsers             []string `yaml:"allowUsers,omitempty" json:"allowUsers,omitempty"`
	AllowGroups            []string `yaml:"allowGroups,omitempty" json:"allowGroups,omitempty"`
	// Settings are more keywords of sshd_config(5), such as X11Forwarding: no.
	Settings map[string]string `yaml:"settings,omitempty" json:"settings,omitempty"`
}

// IsZero reports whether nothing is set.
func (s SSHD) IsZero() bool {
	return s.PasswordAuthentication == nil && s.PermitRootLogin == "" && len(s.Ports)+len(s.AllowUsers)+len(s.AllowGroups)+len(s.Settings) == 0
}

// Firewall says what may reach the machine. With Enabled nil it stays as the OS has it.
type Firewall struct {
	Enabled  *bool    `yaml:"enabled,omitempty" json:"enabled,omitempty"`
	Services []string `yaml:"services,omitempty" json:"services,omitempty"` // such as ssh and https
	Ports    []string `yaml:"ports,omitempty" json:"ports,omitempty"`       // 443/tcp, or a range 30000-32767/udp
}

// IsZero reports whether all fields are empty.
func (f Firewall) IsZero() bool { return f.Enabled == nil && len(f.Services)+len(f.Ports) == 0 }

// SELinux is the mode of SELinux; the OS's own when empty.
type SELinux string

// The modes of SELinux.
const (
	Enforcing  SELinux = "enforcing"
	Permissive SELinux = "permissive"
	Disabled   SELinux = "disabled"
)
