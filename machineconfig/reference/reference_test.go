package reference

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestOnlyConsumersAndAdminsMayNameASecret(t *testing.T) {
	forWeb := inventory.Consumers{Pools: []string{"web"}, Profiles: []string{"debian"}, Targets: []string{"prod"}}
	const owner = "uid/team/MetalMachine/m/1"
	web, db := Place{Pools: []string{"web"}}, Place{Pools: []string{"db"}}
	for name, c := range map[string]struct {
		thing thing
		use   inventory.Use
		at    Place
		want  string // part of the refusal, "" for none
	}{
		"nobody's, by an admin":                {thing{}, inventory.Use{Noun: "profile", Name: "p", IsAdmins: true}, db, ""},
		"nobody's, by an operator":             {thing{}, inventory.Use{Noun: "machine", Name: "m"}, web, "there is no secret x that machine m may name in pool web"},
		"nobody's, by what cannot be traced":   {thing{}, inventory.Use{Noun: "configuration"}, web, "there is no secret x"},
		"nobody's, computed in an admin's":     {thing{}, inventory.Use{Noun: "profile", Name: "p", IsAdmins: true, IsComputed: true}, web, "puts the name together"},
		"web's, in web":                        {thing{consumers: forWeb}, inventory.Use{Noun: "machine", Name: "m"}, web, ""},
		"web's, computed in web":               {thing{consumers: forWeb}, inventory.Use{Noun: "machine", Name: "m", IsComputed: true}, web, ""},
		"web's, in db":                         {thing{consumers: forWeb}, inventory.Use{Noun: "machine", Name: "m"}, db, "there is no secret x"},
		"web's, in db, by an admin":            {thing{consumers: forWeb}, inventory.Use{Noun: "profile", Name: "other", IsAdmins: true}, db, "which is for pool:web, profile:debian, target:prod in pool db"},
		"its profile's, in db":                 {thing{consumers: forWeb}, inventory.Use{Noun: "profile", Name: "debian"}, db, ""},
		"a machine that is called like it":     {thing{consumers: forWeb}, inventory.Use{Noun: "machine", Name: "debian"}, db, "there is no secret x"},
		"its target's":                         {thing{consumers: forWeb}, inventory.Use{Noun: "target", Name: "prod"}, db, ""},
		"a profile is saved for web":           {thing{consumers: forWeb}, inventory.Use{Noun: "profile", Name: "other"}, Place{IsAnywhere: true}, ""},
		"the system's, by an admin":            {thing{system: "cluster lab"}, inventory.Use{Noun: "profile", Name: "p", IsAdmins: true}, web, "belongs to cluster lab: no configuration may name it"},
		"the system's, by an operator":         {thing{system: "cluster lab"}, inventory.Use{Noun: "machine", Name: "m"}, web, "there is no secret x that machine m may name"},
		"the system's, whatever its consumers": {thing{system: "cluster lab", consumers: forWeb}, inventory.Use{Noun: "machine", Name: "m"}, web, "there is no secret x"},
		"the system's, by its target":          {thing{system: "join target prod"}, inventory.Use{Noun: "target", Name: "prod", IsAdmins: true}, web, ""},
		"an object's, by its machine":          {thing{owner: owner}, inventory.Use{Noun: "machine", Name: "m"}, Place{Owner: owner}, ""},
		"an object's, by another":              {thing{owner: owner}, inventory.Use{Noun: "machine", Name: "m"}, Place{Owner: "uid/team/MetalMachine/n/2"}, "there is no secret x"},
		"an object's, by an admin":             {thing{owner: owner}, inventory.Use{Noun: "profile", Name: "p", IsAdmins: true}, web, "is kept for uid/team"},
		"a target of the namespace":            {thing{noun: "target", owner: "uid/team/JoinTarget/x/1"}, inventory.Use{Noun: "machine", Name: "m"}, Place{Owner: owner}, ""},
		"a target of another namespace":        {thing{noun: "target", owner: "uid/other/JoinTarget/x/1"}, inventory.Use{Noun: "machine", Name: "m"}, Place{Owner: owner}, "there is no target x"},
		"a target of another cluster":          {thing{noun: "target", owner: "uid2/team/JoinTarget/x/1"}, inventory.Use{Noun: "machine", Name: "m"}, Place{Owner: owner}, "there is no target x"},
		"a person's target":                    {thing{noun: "target"}, inventory.Use{Noun: "machine", Name: "m"}, Place{Owner: owner}, "there is no target x"},
	} {
		t.Run(name, func(t *testing.T) {
			c.thing.name, c.thing.isThere = "x", true
			if c.thing.noun == "" {
				c.thing.noun = "secret"
			}
			err := decide(c.thing, c.use, c.at)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Msg, c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && !c.use.IsAdmins { // it must not tell that there is one
				missing := c.thing
				missing.isThere, missing.system, missing.owner, missing.consumers = false, "", "", inventory.Consumers{}
				if other := decide(missing, c.use, c.at); other == nil || other.Msg != err.Msg || other.Hint != err.Hint {
					t.Errorf("one that is not there is told differently: %v, %v", err, other)
				}
			}
		})
	}
}

func TestALayersScriptNamesItsSecrets(t *testing.T) {
	n := namesIn("scripts: [{name: s, stage: early, text: 'echo {{ secret \"db\" }}'}]")
	if len(n) != 1 || n[0].Ref != "secret://db" || n[0].Path != "/scripts/s/text" {
		t.Errorf("the layer names %v", n)
	}
}
