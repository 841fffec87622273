package inventory

import (
	"slices"
	"strings"
)

// ClusterSecretPrefix begins the names of secrets that hold the kubeconfigs of attached clusters. No configuration may name
// such a secret.
const ClusterSecretPrefix = "cluster-"

// maxConsumers bounds each list of consumers.
const maxConsumers = 256

// Consumers are those that a secret, or a way into a cluster, is for. Without any, only what an admin has saved may name it.
type Consumers struct {
	// Pools: whatever belongs to a machine of such a pool, or to a host of it that no machine has, may name it.
	Pools []string `json:"pools,omitempty"`
	// Profiles: such a profile may name it, whoever has saved it.
	Profiles []string `json:"profiles,omitempty"`
	// Targets: such a join target may name it. Only secrets have these.
	Targets []string `json:"targets,omitempty"`
}

// IsZero reports whether there are none.
func (c Consumers) IsZero() bool { return len(c.Pools)+len(c.Profiles)+len(c.Targets) == 0 }

// lists returns the lists by the noun that they are of.
func (c *Consumers) lists() []struct {
	noun string
	list *[]string
} {
	return []struct {
		noun string
		list *[]string
	}{{"pool", &c.Pools}, {"profile", &c.Profiles}, {"target", &c.Targets}}
}

// Texts returns the consumers as they are written: pool:web, profile:debian, target:prod.
func (c Consumers) Texts() (texts []string) {
	for _, l := range c.lists() {
		for _, name := range *l.list {
			texts = append(texts, l.noun+":"+name)
		}
	}
	return texts
}

// ParseConsumers reads what Texts wrote. Twice the same is once.
func ParseConsumers(texts []string) (c Consumers, err error) {
	for _, text := range texts {
		noun, name, _ := strings.Cut(text, ":")
		i := slices.IndexFunc(c.lists(), func(l struct {
			noun string
			list *[]string
		},
		) bool {
			return l.noun == noun
		})
		if i < 0 || name == "" {
			return c, Errorf(Invalid, "%q is no consumer", Clean(text, 80)).WithHint("write pool:NAME, profile:NAME or target:NAME")
		}
		if list := c.lists()[i].list; !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	return c, nil
}

// validate checks the names of consumers.
func (c Consumers) validate(where string) error {
	for _, l := range c.lists() {
		if len(*l.list) > maxConsumers {
			return Errorf(Invalid, "%s has %d %ss as consumers; at most %d are allowed", where, len(*l.list), l.noun, maxConsumers)
		}
		for i, name := range *l.list {
			if err := CheckName(l.noun, name); err != nil {
				return err
			}
			if slices.Contains((*l.list)[:i], name) {
				return Errorf(Invalid, "%s has %s %s as a consumer twice", where, l.noun, name).WithHint("remove one of them")
			}
		}
	}
	return nil
}

// Use is one reference from a part of a configuration to something by its name, with who saved that part.
type Use struct {
	Ref  string `json:"ref"`            // secret://NAME, secret://NAME#KEY, or join://TARGET
	Noun string `json:"noun"`           // of the part: profile, layer, machine, or target
	Name string `json:"name,omitempty"` // of the part, or key of the layer
	// IsAdmins says that an admin saved the part. IsComputed says that a template made the name, which then is the word of
	// anyone who wrote what the template reads.
	IsAdmins   bool `json:"isAdmins,omitempty"`
	IsComputed bool `json:"isComputed,omitempty"`
}

// Part names the part in words.
func (u *Use) Part() string { return strings.TrimRight(u.Noun+" "+u.Name, " ") }

// Secret returns the name of the secret that is referred to, "" when it is something else.
func (u *Use) Secret() string { return SecretOf(u.Ref) }

// SecretOf returns the name of a secret out of secret://NAME#KEY, "" when the reference is of something else.
func SecretOf(ref string) string {
	rest, ok := strings.CutPrefix(ref, "secret://")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "#")
	return name
}

// TargetOf returns the name of a join target out of join://TARGET/token, "" when the reference is of something else.
func TargetOf(ref string) string {
	rest, ok := strings.CutPrefix(ref, "join://")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}
