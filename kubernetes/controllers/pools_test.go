package controllers

import (
	"slices"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestAMachineOfAClosedPoolIsKeptOut(t *testing.T) {
	p := &Pools{labels: map[string]string{"team": "dev"}, all: []inventory.Pool{
		{Name: "all"}, {Name: "broken", AllowedNamespaces: "=="}, {Name: "dev", AllowedNamespaces: "team=dev", Selector: "tier=dev"}, {Name: "prod", AllowedNamespaces: "team in (prod)", Selector: "tier=prod"},
	}}
	var names []string
	for _, pool := range p.Closed() {
		names = append(names, pool.Name)
	}
	if !slices.Equal(names, []string{"broken", "prod"}) {
		t.Errorf("closed are %v", names)
	}
	if p.all = slices.Delete(p.all, 1, 2); p.MayUse(&inventory.Host{Labels: map[string]string{"tier": "prod"}}) || !p.MayUse(&inventory.Host{Labels: map[string]string{"tier": "dev"}}) {
		t.Error("the wrong hosts may be used")
	}
}
