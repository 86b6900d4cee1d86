// The page of a run is a module of its own, so that ./... at the root is the product and its tests.
module github.com/idalloc/idalloc/test/report

go 1.26.8

replace github.com/idalloc/idalloc => ../..

require github.com/idalloc/idalloc v0.0.0-00010101000000-000000000000

require golang.org/x/sys v0.49.0 // indirect
