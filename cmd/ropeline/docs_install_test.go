package main

import (
	"os"
	"strings"
	"testing"
)

// TestSettingsOfThePackageWork reads the file that packages install, as it is and with its
// mesh.
func TestSettingsOfThePackageWork(t *testing.T) {
	text, err := os.ReadFile("../../deploy/package/ropeline.yaml")
	if err != nil {
		t.Fatal(err)
	}
	alone, mesh, found := strings.Cut(string(text), "# name:")
	if !found {
		t.Fatal("the file shows no mesh")
	}
	mesh = alone + "name:" + strings.ReplaceAll(mesh, "\n# ", "\n")
	for _, settings := range []string{alone, mesh} {
		cfg, err := parseBeside(t, nil, settings)
		if err != nil {
			t.Fatalf("%v in\n%s", err, settings)
		}
		if _, err := cfg.servedRooms(); err != nil {
			t.Error(err)
		}
		if err := cfg.check(); err != nil {
			t.Error(err)
		}
		if wantMesh := settings == mesh; wantMesh != (cfg.Mesh.Listen != "" && len(cfg.Mesh.Join) == 3 && len(cfg.Rights.Bootstrap) == 3 && cfg.Mesh.SecretFile != "") {
			t.Errorf("mesh %q, join %v, bootstrap %v, secret %q", cfg.Mesh.Listen, cfg.Mesh.Join, cfg.Rights.Bootstrap, cfg.Mesh.SecretFile)
		}
	}
}
