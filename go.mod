module github.com/firstcome/firstcome

go 1.26
