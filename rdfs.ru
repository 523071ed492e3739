INSERT { ?x ?above ?y } WHERE { ?p rdfs:subPropertyOf+ ?above . ?x ?p ?y } ;
INSERT { ?x a ?class } WHERE { ?p rdfs:domain ?class . ?x ?p ?y } ;
INSERT { ?y a ?class } WHERE { ?p rdfs:range ?class . ?x ?p ?y FILTER(!isLiteral(?y)) } ;
INSERT { ?x a ?class } WHERE { ?x a/rdfs:subClassOf+ ?class }
