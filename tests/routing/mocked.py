"""Deployments of LiteLLM that answer by themselves."""


def deployment(name, reply="good", dollars=0.001, group="chat", **more):
    """Return a deployment that answers by itself; every token costs the same, and each reply has 10 + 20 tokens."""
    params = {
        "model": f"openai/{name}",
        "api_key": "none",
        "mock_response": reply,
        "input_cost_per_token": dollars / 30,
        "output_cost_per_token": dollars / 30,
        **more,
    }
    return {"model_name": group, "litellm_params": params, "model_info": {"id": name}}
