package machineconfig

// Packages are the OS's own packages.
type Packages struct {
	Repos   []Repo   `yaml:"repos,omitempty" json:"repos,omitempty"`
	Install []string `yaml:"install,omitempty" json:"install,omitempty"`
	// Groups are groups of dnf and zypper's patterns, or tasks of apt; ^NAME is an environment of dnf.
	Groups []string `yaml:"groups,omitempty" json:"groups,omitempty"`
	Remove []string `yaml:"remove,omitempty" json:"remove,omitempty"`
	Pins   []Pin    `yaml:"pins,omitempty" json:"pins,omitempty"`
	Snaps  []Snap   `yaml:"snaps,omitempty" json:"snaps,omitempty"`
	Hold   []string `yaml:"hold,omitempty" json:"hold,omitempty"` // not upgraded by themselves
	Update bool     `yaml:"update,omitempty" json:"update,omitempty"`
	// Proxy is the URL of the web proxy that packages are fetched through.
	Proxy string `yaml:"proxy,omitempty" json:"proxy,omitempty"`
}

// Pin keeps a package at a version. For apt the version may end in *.
type Pin struct {
	Name    string `yaml:"name" json:"name"`
	Version string `yaml:"version" json:"version"`
	// Priority is apt's; 1001, which downgrades too, when 0.
	Priority int `yaml:"priority,omitempty" json:"priority,omitempty"`
}

// Snap is a package of snapd.
type Snap struct {
	Name    string `yaml:"name" json:"name"`
	Channel string `yaml:"channel,omitempty" json:"channel,omitempty"` // latest/stable when empty
	Classic bool   `yaml:"classic,omitempty" json:"classic,omitempty"`
}

// Repo is a package repository. Suite and Components are for apt: suite / for a flat one.
type Repo struct {
	ID         string   `yaml:"id" json:"id"`
	URL        string   `yaml:"url" json:"url"`
	Suite      string   `yaml:"suite,omitempty" json:"suite,omitempty"`
	Components []string `yaml:"components,omitempty" json:"components,omitempty"`
	Key        string   `yaml:"key,omitempty" json:"key,omitempty"` // armoured signing key, or its https URL
}
