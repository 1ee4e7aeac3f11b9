-- A model id of Bedrock without its date and version, as usage types write it.
-- args: model
regexp_replace(model, '(-[0-9]{8})?(-v[0-9]+)?(:[0-9a-z]+)*$', '')
